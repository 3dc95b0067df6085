// WorkLine: what a command that takes a while is doing, for a person who waits: one line on a
// terminal, with the seconds so far. What is over at once draws nothing, and where standard error
// is no terminal nothing is ever drawn.
//
// A thread of its own draws, so that what is waited for need not tell of itself.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/log.h"
#include "cluster/process/status_line.h"

namespace motley {

// Standard error, where that is a live terminal; else nullptr.
[[nodiscard]] std::FILE* live_standard_error();

// say() and the others from any thread.
class WorkLine {
 public:
  // "planning"; "" until there is something to say. `live`: a live terminal, or nullptr.
  explicit WorkLine(std::string what, std::FILE* live = live_standard_error());
  // Takes the line off the screen.
  ~WorkLine();
  WorkLine(const WorkLine&) = delete;
  WorkLine& operator=(const WorkLine&) = delete;

  // From now on the line says that.
  void say(std::string what);

  // From now on the line says what `what` does at each drawing, which a thread of its own asks for.
  // REQUIRES: `what` never says ""; what it looks at stays until something else is said.
  void follow(std::function<std::string()> what);

  // Takes the line off the screen for good, or until something is said again.
  void clear() { say(""); }

  // Takes the line off the screen for what somebody else prints now; it comes back.
  void step_aside();

  // For a log to standard error, whose lines the line makes room for. Not to be used after it.
  [[nodiscard]] Log::Output log_output();

 private:
  void draw_until_end();
  // REQUIRES: mutex_ is held.
  void set(std::string what, std::function<std::string()> followed);

  const double began_s_;
  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable changed_;
  std::string what_;
  std::function<std::string()> followed_;  // says what_ anew, where it is set
  std::optional<StatusLine> line_;         // only on a terminal
  double next_draw_s_;
  bool ends_ = false;
  std::thread drawer_;
};

}  // namespace motley

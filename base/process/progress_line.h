// ProgressLine: a progress line on a terminal for a long command, with the elapsed seconds. Short
// work draws nothing, and nothing is drawn if standard error is not a terminal.
//
// It is drawn by a thread of its own, so the work itself need not report.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/log.h"
#include "base/process/status_line.h"

namespace motley {

// Standard error if it is a live terminal, else nullptr.
[[nodiscard]] std::FILE* live_standard_error();

// All functions may be called from any thread.
class ProgressLine {
 public:
  // `what`: e.g. "planning"; "" = nothing to show yet. `live`: a live terminal, or nullptr.
  explicit ProgressLine(std::string what, std::FILE* live = live_standard_error());
  // Erases the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Sets the text.
  void say(std::string what);

  // Sets the text to the result of `what`, which the drawing thread calls at each redraw.
  // REQUIRES: `what` never returns ""; the data that it reads stay valid until the text is set
  // again.
  void follow(std::function<std::string()> what);

  // Erases the line until the text is set again.
  void clear() { say(""); }

  // Erases the line for other output; it is drawn again later.
  void step_aside();

  // The output of a log to standard error that erases the line before each write. REQUIRES: not
  // used after this object's destruction.
  [[nodiscard]] Log::Output log_output();

 private:
  void draw_until_end();
  // REQUIRES: mutex_ is held.
  void set(std::string what, std::function<std::string()> followed);

  const double began_s_;
  std::mutex mutex_;  // guards all members below but the thread
  std::condition_variable changed_;
  std::string what_;
  std::function<std::string()> followed_;  // if set, computes what_ at each redraw
  std::optional<StatusLine> line_;         // only on a terminal
  double next_draw_s_;
  bool ends_ = false;
  std::thread drawer_;
};

}  // namespace motley

// StatusLine: one line of a terminal that is redrawn in place, for long operations.
#pragma once

#include <cstdio>
#include <string>

namespace motley {

// Whether `out` is a terminal that can move its cursor. The value of TERM is passed in; nullptr =
// not set.
[[nodiscard]] bool is_live_terminal(std::FILE* out, const char* term);

// One owner thread. REQUIRES: out outlives the object and is a live terminal.
class StatusLine {
 public:
  explicit StatusLine(std::FILE* out) : out_(out) {}

  // Replaces the line. The text is cut at the terminal's width: a wrapped line could not be
  // replaced.
  void show(const std::string& text);
  // Erases the line, before other output is printed.
  void clear();

 private:
  std::FILE* out_;
  bool on_screen_ = false;
};

}  // namespace motley

// StatusLine: one line of a terminal that is drawn again and again, for what takes long.
#pragma once

#include <cstdio>
#include <string>

namespace motley {

// Whether `out` is a terminal that can move its cursor. The value of TERM is passed in; nullptr =
// not set.
[[nodiscard]] bool is_live_terminal(std::FILE* out, const char* term);

// One owner thread. REQUIRES: out outlives it, and is a live terminal.
class StatusLine {
 public:
  explicit StatusLine(std::FILE* out) : out_(out) {}

  // Replaces the line. What does not fit is cut: a line that wrapped could not be replaced.
  void show(const std::string& text);
  // Takes it off the screen, before something else is printed.
  void clear();

 private:
  std::FILE* out_;
  bool on_screen_ = false;
};

}  // namespace motley

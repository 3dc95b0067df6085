#include "watch/terminal/raw_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace motley {

RawTerminal::RawTerminal() {
  termios now{};
  if (::isatty(STDIN_FILENO) != 1 || ::tcgetattr(STDIN_FILENO, &now) != 0) return;
  before_ = now;
  take();
}

RawTerminal::~RawTerminal() {
  give_back();
}

void RawTerminal::give_back() const {
  if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

void RawTerminal::take() const {
  if (!before_) return;
  termios raw = *before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

int RawTerminal::fd() const {
  return before_ ? STDIN_FILENO : -1;
}

std::optional<char> RawTerminal::key() {
  char key = 0;
  if (!before_ || ::read(STDIN_FILENO, &key, 1) != 1) return {};
  return key;
}

TerminalSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

}  // namespace motley

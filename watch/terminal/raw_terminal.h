// RawTerminal: while it exists, the terminal on standard input delivers keys one at a time without
// echo; signal keys still work. The destructor restores the previous settings. Without a terminal
// on standard input there are no keys. give_back() and take() lend the terminal to other programs.
#pragma once

#include <termios.h>

#include <cstddef>
#include <optional>

namespace motley {

class RawTerminal {
 public:
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  void give_back() const;
  // Enters raw mode again, as the constructor did.
  void take() const;

  // For poll() on keys; -1 = no keys.
  [[nodiscard]] int fd() const;
  // A key, or nothing if none is pending.
  [[nodiscard]] std::optional<char> key();

 private:
  std::optional<termios> before_;
};

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// The current size of the terminal on standard output; 80 x 24 if it is unknown.
[[nodiscard]] TerminalSize terminal_size();

}  // namespace motley

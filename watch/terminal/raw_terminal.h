// RawTerminal: while it lives, keys of the terminal on standard input come one by one and are not
// shown; signals still come by their keys. What was before is restored. Where standard input is no
// terminal there are no keys. give_back() and take() let others have the terminal for a while.
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
  // Again, as the constructor did.
  void take() const;

  // To wait for a key with poll(); -1 = there are none.
  [[nodiscard]] int fd() const;
  // A key that has come; nothing where none has.
  [[nodiscard]] std::optional<char> key();

 private:
  std::optional<termios> before_;
};

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// Of the terminal on standard output, as it is now; the usual size where it does not tell.
[[nodiscard]] TerminalSize terminal_size();

}  // namespace motley

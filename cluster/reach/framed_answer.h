// FramedAnswer: what a command on another machine answers, told from whatever the shell there
// prints before, after and beside it: greetings of any length, lines without an end, control
// sequences, bytes that are no text. The command runs between two marks that are new each time, and
// its exit status comes with the second one, so a shell with a status of its own does not count
// either. Pure: bytes go in.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

// `command` run by sh with its marks. REQUIRES: `mark` is a word of letters and digits.
[[nodiscard]] std::vector<std::string> framed_command(const std::vector<std::string>& command,
                                                      const std::string& mark);

class FramedAnswer {
 public:
  explicit FramedAnswer(const std::string& mark);

  // What came on standard output and on standard error.
  void add_output(std::string_view bytes);
  void add_errors(std::string_view bytes);

  // Whether the command has begun, so that the shell before it has let it run.
  [[nodiscard]] bool has_begun() const { return has_begun_; }

  // Its exit status, once it has ended.
  [[nodiscard]] const std::optional<int>& status() const { return status_; }

  // Its standard output, with "\n" for "\r\n"; at most kBytesMax. REQUIRES: it has ended.
  [[nodiscard]] const std::string& said() const { return output_; }

  // The last line of its standard error; where it never began, of the shell's or of ssh.
  [[nodiscard]] std::string last_error_line() const;

  static constexpr std::size_t kBytesMax = 64U << 10;

 private:
  void look_for_end();

  const std::string begin_;
  const std::string end_;
  const std::string errors_begin_;
  bool has_begun_ = false;
  bool has_error_mark_ = false;
  std::optional<int> status_;
  std::string output_;  // before it has begun: the end of what came
  std::string errors_;  // the end of them, since the mark where that has come
};

}  // namespace motley

// FramedOutput: separates the output of a remote command from other output of the shell there:
// greetings of any length, lines without an end, control sequences, binary data. The command runs
// between two marker lines, new for each call. Its exit status is in the second one, so the shell's
// own status is not used. Pure: bytes are passed in.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

// `command` run by sh between its markers. REQUIRES: `marker` consists of letters and digits.
[[nodiscard]] std::vector<std::string> framed_command(const std::vector<std::string>& command,
                                                      const std::string& marker);

class FramedOutput {
 public:
  explicit FramedOutput(const std::string& marker);

  // Bytes received from standard output and from standard error.
  void add_output(std::string_view bytes);
  void add_errors(std::string_view bytes);

  // Whether the command has begun, i.e. the shell has started it.
  [[nodiscard]] bool has_begun() const { return has_begun_; }

  // The command's exit status, once it has ended.
  [[nodiscard]] const std::optional<int>& status() const { return status_; }

  // The command's standard output, with "\n" for "\r\n"; at most kBytesMax. REQUIRES: it has ended.
  [[nodiscard]] const std::string& said() const { return output_; }

  // The last line of its standard error. If it never began: the last line from the shell or from
  // ssh.
  [[nodiscard]] std::string last_error_line() const;

  static constexpr std::size_t kBytesMax = 64U << 10;

 private:
  void look_for_end();

  const std::string begin_;
  const std::string end_;
  const std::string errors_begin_;
  bool has_begun_ = false;
  bool has_error_marker_ = false;
  std::optional<int> status_;
  std::string output_;  // before the command has begun: the end of the received bytes
  std::string errors_;  // its end, since the marker once that has arrived
};

}  // namespace motley

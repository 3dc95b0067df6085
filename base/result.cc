#include "base/result.h"

#include <algorithm>
#include <utility>

namespace motley {
namespace {

// The length in bytes of a terminal control sequence at the beginning of the text: control
// characters of ASCII and of Latin-1, and Unicode's bidirectional formatting marks. 0 = none.
std::size_t length_of_command(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;
  if (byte(0) != 0xe2) return 0;
  const bool turns = (byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f ||
                                          (byte(2) >= 0xaa && byte(2) <= 0xae))) ||
                     (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
  return turns ? 3 : 0;
}

}  // namespace

bool is_stop(const Error& error) {
  return error.code == ErrorCode::kInterrupted || error.code == ErrorCode::kTerminated;
}

std::string describe(const Error& error) {
  return std::string(is_stop(error) ? "motley: stopped: " : "motley: error: ") + in_full(error);
}

std::string in_full(const Error& error) {
  std::string text = error.what + "\n";
  if (!error.cause.empty()) text += "  cause: " + error.cause + "\n";
  if (error.remedy.empty()) return text;
  text += "  try:   ";
  for (const char c : error.remedy) text += c == '\n' ? "\n         " : std::string(1, c);
  return text + "\n";
}

std::string excerpt(std::string_view text, std::size_t bytes_max) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  std::size_t length = std::min(text.size(), bytes_max);
  // Do not cut within a UTF-8 character.
  while (length < text.size() && length > 0 && continues(text[length])) --length;
  std::string quoted(text.substr(0, length));
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    const std::size_t commands = length_of_command(std::string_view(quoted).substr(i));
    for (std::size_t k = 0; k < commands; ++k) quoted[i + k] = '?';
  }
  return length < text.size() ? quoted + "…" : quoted;
}

Error with_context(Error error, const std::string& context) {
  error.what = context + ": " + error.what;
  return error;
}

Error with_key(Error error, std::string key) {
  error.key = std::move(key);
  return error;
}

}  // namespace motley

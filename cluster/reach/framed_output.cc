#include "cluster/reach/framed_output.h"

#include <charconv>

namespace motley {
namespace {

// A shell that echoes its commands prints the marker and "-begin" apart, so the echo does not
// match. One line without '!' and '\\', so that shells that are not POSIX shells pass it on
// unchanged.
constexpr const char* kFrame =
    R"(m=$1; shift; printf '\n%s-errors\n' "$m" >&2; printf '\n%s-begin\n' "$m"; "$@"; s=$?; )"
    R"(printf '\n%s-end %d\n' "$m" "$s"; exit "$s")";

void keep_end(std::string& text, std::size_t bytes) {
  if (text.size() > bytes) text.erase(0, text.size() - bytes);
}

// The text from the line after the one that ends with `marker`; nothing if that line is incomplete.
std::optional<std::string> lines_after(const std::string& text, const std::string& marker) {
  const std::size_t at = text.find(marker);
  if (at == std::string::npos) return {};
  const std::size_t end = text.find('\n', at + marker.size());
  if (end == std::string::npos) return {};
  return text.substr(end + 1);
}

// A terminal between the two ends inserts them.
void take_carriage_returns_out(std::string& text) {
  for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos;) text.erase(at, 1);
}

}  // namespace

std::vector<std::string> framed_command(const std::vector<std::string>& command,
                                        const std::string& marker) {
  std::vector<std::string> framed = {"sh", "-c", kFrame, "sh", marker};
  framed.insert(framed.end(), command.begin(), command.end());
  return framed;
}

FramedOutput::FramedOutput(const std::string& marker)
    : begin_(marker + "-begin"), end_(marker + "-end "), errors_begin_(marker + "-errors") {}

void FramedOutput::add_output(std::string_view bytes) {
  if (status_) return;
  output_ += bytes;
  if (!has_begun_) {
    if (auto rest = lines_after(output_, begin_)) {
      has_begun_ = true;
      output_ = *std::move(rest);
    } else {
      keep_end(output_, begin_.size() + 2);  // and the line end "\r\n"
    }
  }
  if (has_begun_) look_for_end();
}

void FramedOutput::look_for_end() {
  const std::size_t at = output_.find(end_);
  if (at == std::string::npos) {
    if (output_.size() > kBytesMax) output_.resize(kBytesMax);
    return;
  }
  const char* const digits = output_.data() + at + end_.size();
  const char* const last = output_.data() + output_.size();
  int status = 0;
  const auto [next, code] = std::from_chars(digits, last, status);
  if (code != std::errc{} || next == last) return;  // the rest of the line has not arrived
  status_ = status;
  output_.resize(at);
  take_carriage_returns_out(output_);
  if (output_.ends_with('\n')) output_.pop_back();  // the line end printed before the marker
}

void FramedOutput::add_errors(std::string_view bytes) {
  errors_ += bytes;
  if (!has_error_marker_) {
    if (auto rest = lines_after(errors_, errors_begin_)) {
      has_error_marker_ = true;
      errors_ = *std::move(rest);
    }
  }
  keep_end(errors_, kBytesMax);
}

std::string FramedOutput::last_error_line() const {
  std::string_view text = errors_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace motley

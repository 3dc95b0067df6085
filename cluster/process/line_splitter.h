// LineSplitter: whole lines out of a stream of bytes from somebody who is not trusted.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace motley {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  void add(std::string_view bytes) { pending_ += bytes; }

  // The next whole line without its end ("\n" or "\r\n"), if there is one.
  [[nodiscard]] std::optional<std::string> next();

  // What followed the last whole line; forgets it. For the end of the stream, and for cutting
  // a line that is too long.
  [[nodiscard]] std::string take_rest();

  // The line begun, not yet ended, is longer than allowed. REQUIRES: next() returned nothing.
  [[nodiscard]] bool too_long() const { return pending_.size() - start_ > line_bytes_max_; }

 private:
  std::size_t line_bytes_max_;
  std::string pending_;
  std::size_t start_ = 0;    // of the line begun; what is before it was handed out
  std::size_t scanned_ = 0;  // no line end stands in [start_, scanned_)
};

}  // namespace motley

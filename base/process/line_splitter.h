// LineSplitter: splits a byte stream from an untrusted source into lines.
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

  // Returns and clears the bytes after the last whole line. For the end of the stream, and for
  // cutting a line that is too long.
  [[nodiscard]] std::string take_rest();

  // Whether the unfinished line is longer than allowed. REQUIRES: next() returned nothing.
  [[nodiscard]] bool too_long() const { return pending_.size() - start_ > line_bytes_max_; }

 private:
  std::size_t line_bytes_max_;
  std::string pending_;
  std::size_t start_ = 0;    // of the unfinished line; earlier bytes were returned
  std::size_t scanned_ = 0;  // [start_, scanned_) contains no line end
};

}  // namespace motley

// LineFollower: incremental reading of a file's lines while another process writes it. Lines are
// appended, the last one may be incomplete, and the file may be truncated, rewritten or replaced.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system/owned_fd.h"

namespace motley {

class LineFollower {
 public:
  struct NewLines {
    bool begins_anew = false;        // earlier lines are void; these are the first
    std::vector<std::string> lines;  // complete lines, without line ends
    bool has_more = false;           // unread data remains: poll again at once
  };

  // Lines longer than line_bytes_max are skipped.
  LineFollower(std::filesystem::path path, std::size_t line_bytes_max)
      : path_(std::move(path)), line_bytes_max_(line_bytes_max) {}

  // The lines since the last call, from at most kPieceBytes of the file. Empty while the file does
  // not exist or cannot be read.
  [[nodiscard]] NewLines poll();

  // Whether a readable file exists.
  [[nodiscard]] bool has_file() const { return fd_.open(); }

  // The bytes read so far, and the file's size at the last poll; 0 without a file.
  [[nodiscard]] std::int64_t read_bytes() const { return read_bytes_; }

  [[nodiscard]] std::int64_t file_bytes() const { return fd_.open() ? seen_.st_size : 0; }

  [[nodiscard]] std::int64_t left_out() const { return left_out_; }  // skipped lines

  // The file's modification time, since 1970 UTC; 0 without a file.
  [[nodiscard]] double written_at_s() const;

  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

 private:
  // Opens the file at the path; true if it differs from a previously opened one.
  bool reopen();
  // Whether the last bytes read are still in the file.
  [[nodiscard]] bool is_unchanged(const struct stat& now) const;
  void forget();
  void take(std::string_view bytes, std::vector<std::string>& lines);

  const std::filesystem::path path_;
  const std::size_t line_bytes_max_;
  OwnedFd fd_;

  struct stat seen_ {};

  std::int64_t read_bytes_ = 0;
  std::string tail_;      // the last bytes read; they detect a rewritten file
  std::string begun_;     // the beginning of the incomplete line
  bool is_long_ = false;  // that line is skipped
  std::int64_t left_out_ = 0;
};

}  // namespace motley

// LineFollower: the lines of a file that somebody else writes while it is read: lines are added,
// the last one may not be whole yet, and now and then the file is cut, begun anew or replaced.
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
  struct News {
    bool begins_anew = false;        // what was given before holds no longer: these are the first
    std::vector<std::string> lines;  // whole ones, without their ends
    bool has_more = false;           // to be asked for at once
  };

  // A line that is longer than line_bytes_max is left out.
  LineFollower(std::filesystem::path path, std::size_t line_bytes_max)
      : path_(std::move(path)), line_bytes_max_(line_bytes_max) {}

  // What came since the last call, as far as about kPieceBytes hold it. Nothing while there is no
  // file, or it cannot be read.
  [[nodiscard]] News poll();

  // Whether there is one that can be read.
  [[nodiscard]] bool has_file() const { return fd_.open(); }

  // How much of the file was read, and how long it was then; 0 where there is none.
  [[nodiscard]] std::int64_t read_bytes() const { return read_bytes_; }

  [[nodiscard]] std::int64_t file_bytes() const { return fd_.open() ? seen_.st_size : 0; }

  [[nodiscard]] std::int64_t left_out() const { return left_out_; }  // lines

  // When the file was last written, since 1970 UTC; 0 where there is none.
  [[nodiscard]] double written_at_s() const;

  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

 private:
  // Opens the file that is there now; true where it is another one than before.
  bool reopen();
  // Whether what was read stands in the file still.
  [[nodiscard]] bool still_stands(const struct stat& now) const;
  void forget();
  void take(std::string_view bytes, std::vector<std::string>& lines);

  const std::filesystem::path path_;
  const std::size_t line_bytes_max_;
  OwnedFd fd_;

  struct stat seen_ {};

  std::int64_t read_bytes_ = 0;
  std::string tail_;      // the last bytes that were read, by which a cut is noticed
  std::string begun_;     // of the line that is not whole yet
  bool is_long_ = false;  // that line is left out
  std::int64_t left_out_ = 0;
};

}  // namespace motley

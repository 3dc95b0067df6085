// FileSource: the bytes of a file that a rank sends, in transfer order. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "checkpoint/input_file.h"
#include "checkpoint/transfer/file_ranges.h"
#include "checkpoint/transfer/file_transfer.h"

namespace motley {

class FileSource {
 public:
  // kCorrupt if the file does not exist, has another size than in the order, or lacks ordered
  // tensors.
  [[nodiscard]] static Result<FileSource> open(const std::filesystem::path& path,
                                               const FileOrder& order);

  [[nodiscard]] std::uint64_t left_bytes() const { return left_bytes_; }

  // The next bytes. kCorrupt if the file ends before. REQUIRES: into.size() <= left_bytes().
  [[nodiscard]] Result<void> read(std::span<std::byte> into);

 private:
  FileSource(InputFile file, std::vector<FileRange> ranges);

  InputFile file_;
  std::vector<FileRange> ranges_;  // unread, from `range_` on
  std::size_t range_ = 0;
  std::uint64_t left_bytes_ = 0;  // over all ranges
};

}  // namespace motley

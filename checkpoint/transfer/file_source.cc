#include "checkpoint/transfer/file_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "checkpoint/manifest.h"

namespace motley {

FileSource::FileSource(InputFile file, std::vector<FileRange> ranges)
    : file_(std::move(file)), ranges_(std::move(ranges)) {
  for (const FileRange& range : ranges_) left_bytes_ += range.bytes;
}

Result<FileSource> FileSource::open(const std::filesystem::path& path, const FileOrder& order) {
  MOTLEY_ASSIGN(InputFile file, InputFile::open(path));
  if (file.bytes() != order.file.bytes) {
    return damaged_checkpoint(path.string(), fmt::format("it has {} bytes; the manifest says {}",
                                                         file.bytes(), order.file.bytes));
  }
  std::vector<FileRange> ranges = {whole_file(order)};
  if (order.tensors) {
    MOTLEY_ASSIGN(const std::string head, read_safetensors_head(file));
    MOTLEY_ASSIGN(ranges, ordered_tensors(order, head, path.string()));
    ranges.insert(ranges.begin(), FileRange{0, head.size(), "", ""});
  }
  return FileSource(std::move(file), std::move(ranges));
}

Result<void> FileSource::read(std::span<std::byte> into) {
  MOTLEY_CHECK(into.size() <= left_bytes_, "{} bytes of {}", into.size(), left_bytes_);
  while (!into.empty()) {
    FileRange& range = ranges_[range_];
    const auto part = into.first(std::min<std::uint64_t>(into.size(), range.bytes));
    MOTLEY_TRY(file_.read_at(range.offset, part));
    range.offset += part.size();
    range.bytes -= part.size();
    left_bytes_ -= part.size();
    into = into.subspan(part.size());
    if (range.bytes == 0) ++range_;
  }
  return {};
}

}  // namespace motley

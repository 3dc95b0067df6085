// The byte ranges of a file that an order requests, in the order of their transfer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/transfer/file_transfer.h"

namespace motley {

struct FileRange {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
  std::string hash;    // hash128_hex of the range, from the manifest
  std::string tensor;  // the tensor; empty: the whole file
};

[[nodiscard]] FileRange whole_file(const FileOrder& order);

// The ordered tensors, from the untrusted `head` of the file `source`: its header with the length
// before it. kCorrupt as for SafetensorsFile::open, if the header's tensors are not those of the
// manifest, or if an ordered one is not among them. REQUIRES: order.tensors; the length is that of
// the header and fits order.file.bytes.
[[nodiscard]] Result<std::vector<FileRange>> ordered_tensors(const FileOrder& order,
                                                             std::string_view head,
                                                             const std::string& source);

}  // namespace motley

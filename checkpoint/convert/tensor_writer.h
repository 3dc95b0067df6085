// Writes files of tensors from streams of values, in memory that does not grow with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/convert/float_format.h"
#include "checkpoint/convert/value_stream.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/work_observer.h"

namespace motley {

// A tensor to write, and the source of its values.
struct NewTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::function<std::unique_ptr<ValueStream>()> open;
  // For integer and boolean tensors: their dtype in the file, and their bytes, which are not
  // converted.
  std::string dtype = {};
  std::function<Result<std::vector<std::byte>>()> bytes = {};
  // Of floats: the format that they are written in whatever the rule says.
  std::optional<FloatFormat> format = {};
};

struct FormatRule {
  FloatFormat format = FloatFormat::kFp32;
  bool saturates = false;  // clamps values beyond the format's range instead of failing
};

// The contents of several files: consecutive tensors of one list, [file].
using FileParts = std::vector<std::span<const NewTensor>>;

[[nodiscard]] std::uint64_t bytes_of(std::span<const NewTensor> tensors, FloatFormat format);

// Files of at most bytes_max, as few as possible in the order of the list; a larger tensor gets its
// own file.
[[nodiscard]] FileParts parts_up_to(std::span<const NewTensor> tensors,
                                    FloatFormat format,
                                    std::uint64_t bytes_max);

// Cuts a list of weights into `parts` runs so that the heaviest run is as light as possible;
// returns the end of each. The last ones may be empty. REQUIRES: parts > 0.
[[nodiscard]] std::vector<std::size_t> even_cuts(std::span<const std::uint64_t> weights, int parts);

// An upper bound of the bytes of such files.
[[nodiscard]] std::uint64_t files_bytes_max(std::span<const NewTensor> tensors, FloatFormat format);

// kCorrupt if a tensor's name, or the number of tensors, is not allowed in a file.
[[nodiscard]] Result<void> check_writable(std::span<const NewTensor> tensors);

// Writes one file, synced. kConfig if a value is beyond the format's largest number and the rule
// does not saturate; kCorrupt if it cannot be read or written. REQUIRES: check_writable succeeded.
[[nodiscard]] Result<WrittenFile> write_tensors(const std::filesystem::path& path,
                                                std::span<const NewTensor> tensors,
                                                const FormatRule& rule,
                                                WorkObserver& watch);

}  // namespace motley

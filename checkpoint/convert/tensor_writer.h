// Writing files of tensors whose values come from elsewhere, in memory that does not grow with
// them.
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
#include "checkpoint/convert/number_format.h"
#include "checkpoint/convert/value_stream.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/work_watch.h"

namespace motley {

// A tensor that is to be written, and where its values come from.
struct NewTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::function<std::unique_ptr<ValueStream>()> open;
  // Of integers and truth values: their type in the format, and their bytes, which no rule changes.
  std::string dtype = {};
  std::function<Result<std::vector<std::byte>>()> bytes = {};
  // Of floats: the format that they are written in whatever the rule says.
  std::optional<NumberFormat> format = {};
};

struct NumberRule {
  NumberFormat format = NumberFormat::kFp32;
  bool saturates = false;  // what is beyond the format's largest number becomes that, and no error
};

// What each of several files holds: consecutive tensors of one list, [file].
using FileParts = std::vector<std::span<const NewTensor>>;

[[nodiscard]] std::uint64_t bytes_of(std::span<const NewTensor> tensors, NumberFormat format);

// Files of at most bytes_max, as few as go in the order of the list; a tensor that is larger has
// one for itself.
[[nodiscard]] FileParts parts_up_to(std::span<const NewTensor> tensors,
                                    NumberFormat format,
                                    std::uint64_t bytes_max);

// Cuts a list of such weights into `parts` runs, of which the heaviest is as light as can be:
// returns where each ends. The last ones may be empty. REQUIRES: parts > 0.
[[nodiscard]] std::vector<std::size_t> even_cuts(std::span<const std::uint64_t> weights, int parts);

// At least what such files need.
[[nodiscard]] std::uint64_t files_bytes_max(std::span<const NewTensor> tensors,
                                            NumberFormat format);

// kCorrupt when a tensor's name, or their number, does not go into a file.
[[nodiscard]] Result<void> check_writable(std::span<const NewTensor> tensors);

// One file, synced. kConfig when a value is beyond the format's largest number and the rule does
// not saturate; kCorrupt when it cannot be read or written. REQUIRES: check_writable is content.
[[nodiscard]] Result<WrittenFile> write_tensors(const std::filesystem::path& path,
                                                std::span<const NewTensor> tensors,
                                                const NumberRule& rule,
                                                WorkWatch& watch);

}  // namespace motley

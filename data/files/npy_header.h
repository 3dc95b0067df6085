// The header of NumPy's .npy files (numpy.lib.format), versions 1.0, 2.0 and 3.0, of the arrays
// that training takes: plain numbers, row after row, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

struct NpyHeader {
  ElementType type = ElementType::kUint8;
  std::vector<std::int64_t> shape;  // all dimensions, each from 0 to 2^40
  std::size_t data_begin = 0;       // where the array follows, to the end of the file
};

// The header as it stands in the file: any of NumPy's types of plain numbers, in either order.
struct NpyOutline {
  std::string type;  // "<f4"
  bool columns_first = false;
  std::vector<std::int64_t> shape;
  std::size_t data_begin = 0;
};

[[nodiscard]] bool is_npy(std::span<const std::byte> file);

// As parse_npy, but for what concerns the type, the order and the length of the array.
[[nodiscard]] Result<NpyOutline> outline_npy(std::span<const std::byte> file,
                                             const std::string& path);

// Whether so many bytes follow the header as it says, of numbers of `element_bytes` that are called
// `element`. kData.
[[nodiscard]] Result<void> check_npy_length(const NpyOutline& outline,
                                            std::string_view element,
                                            std::size_t element_bytes,
                                            std::size_t file_bytes,
                                            const std::string& path);

// From the bytes of a whole file, which are not trusted; `path` names it in errors. kData when they
// are damaged, when the file is not as long as the header says, or when the array is of another
// kind; then with what to do in Python.
[[nodiscard]] Result<NpyHeader> parse_npy(std::span<const std::byte> file, const std::string& path);

}  // namespace motley

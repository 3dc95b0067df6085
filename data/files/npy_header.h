// The header of NumPy's .npy files (numpy.lib.format), versions 1.0, 2.0 and 3.0, for the arrays
// that training supports: plain numbers, row-major, little-endian.
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
  std::size_t data_begin = 0;       // start of the array, which extends to the end of the file
};

// The header as in the file: any of NumPy's plain numeric types, in either memory order.
struct NpyOutline {
  std::string type;  // "<f4"
  bool columns_first = false;
  std::vector<std::int64_t> shape;
  std::size_t data_begin = 0;
};

[[nodiscard]] bool is_npy(std::span<const std::byte> file);

// As parse_npy, but without checks of the array's type, order and length.
[[nodiscard]] Result<NpyOutline> outline_npy(std::span<const std::byte> file,
                                             const std::string& path);

// kData if the size of the data after the header does not match its shape, for numbers of
// `element_bytes` that are called `element`.
[[nodiscard]] Result<void> check_npy_length(const NpyOutline& outline,
                                            std::string_view element,
                                            std::size_t element_bytes,
                                            std::size_t file_bytes,
                                            const std::string& path);

// Parses the untrusted bytes of a whole file; `path` names it in errors. kData if they are damaged,
// if the file's length contradicts the header, or, with a hint for Python, if the array is of
// another kind.
[[nodiscard]] Result<NpyHeader> parse_npy(std::span<const std::byte> file, const std::string& path);

}  // namespace motley

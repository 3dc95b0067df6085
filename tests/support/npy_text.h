// Arrays and images in the file formats of common programs.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <vector>

namespace motley {

// As written by numpy.save, version 1.0: the data begins at a multiple of 64.
inline std::string npy_of(const std::string& header, const std::string& data) {
  constexpr std::size_t kBefore = 10;
  std::string padded = header;
  padded.resize((kBefore + header.size() + 1 + 63) / 64 * 64 - kBefore - 1, ' ');
  padded += '\n';
  const auto low = static_cast<char>(padded.size() & 0xFF);
  const auto high = static_cast<char>(padded.size() >> 8);
  return std::string("\x93NUMPY\x01\x00", 8) + low + high + padded + data;
}

// `type` in NumPy's notation: "<f4".
inline std::string npy_header(const std::string& type, const std::vector<std::int64_t>& shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type,
                     fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

// The magic number of an IDX file of bytes, its dimensions and `data`.
inline std::string idx_of(const std::vector<std::int64_t>& shape, const std::string& data) {
  std::string bytes = std::string("\0\0\x08", 3) + static_cast<char>(shape.size());
  for (const std::int64_t size : shape) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 0xFF);
  }
  return bytes + data;
}

}  // namespace motley

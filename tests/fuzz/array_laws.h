// The properties of the headers of arrays and images, and valid files.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "data/files/idx_files.h"
#include "data/files/npy_header.h"
#include "tests/fuzz/laws.h"
#include "tests/support/npy_text.h"

namespace motley {

inline std::string right_npy() {
  return npy_of(npy_header("<i4", {2, 3}), std::string(24, '\1'));
}

inline std::string right_idx() {
  return idx_of({2, 3, 1}, "abcdef");
}

// Whether exactly the bytes of the header's shape follow the header, without overflow in any
// product.
inline bool is_intact(std::span<const std::int64_t> shape,
                      std::size_t element,
                      std::size_t file_bytes,
                      std::size_t data_begin) {
  unsigned __int128 bytes = element;
  for (const std::int64_t size : shape) {
    bytes *= static_cast<std::uint64_t>(size);
    if (bytes > file_bytes) return false;
  }
  return data_begin <= file_bytes && bytes == file_bytes - data_begin;
}

// A header that was read is equal after writing and reading it again.
inline std::string wrong_with_npy(std::string_view file) {
  const auto header = parse_npy(std::as_bytes(std::span(file)), "a.npy");
  if (!header.ok()) return wrong_error(header.error(), {ErrorCode::kData}, "a.npy");
  // An array without elements may have other dimensions of any length.
  const bool is_empty = std::ranges::find(header->shape, 0) != header->shape.end();
  if (is_empty && header->data_begin != file.size()) return "more bytes than none";
  if (!is_empty &&
      !is_intact(header->shape, element_bytes(header->type), file.size(), header->data_begin)) {
    return "another shape than its bytes";
  }
  constexpr std::array kNames = {"|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<f4"};
  const std::string name = kNames.at(static_cast<std::size_t>(header->type));
  const std::string again =
      npy_of(npy_header(name, header->shape), std::string(file.substr(header->data_begin)));
  const auto back = parse_npy(std::as_bytes(std::span(again)), "b.npy");
  if (!back.ok()) return "written and refused: " + describe(back.error());
  const bool same = back->type == header->type && back->shape == header->shape;
  return same ? "" : "written and read, and not the same";
}

// A header that was read is equal after writing and reading it again.
inline std::string wrong_with_idx(std::string_view file) {
  for (const std::size_t dimensions : {std::size_t{1}, std::size_t{3}}) {
    const auto header = parse_idx(std::as_bytes(std::span(file)), dimensions, "a.idx");
    if (!header.ok()) {
      const std::string wrong = wrong_error(header.error(), {ErrorCode::kData}, "a.idx");
      if (!wrong.empty()) return wrong;
      continue;
    }
    if (header->shape.size() != dimensions) return "other dimensions";
    if (!is_intact(header->shape, 1, file.size(), header->data_begin)) {
      return "another shape than its bytes";
    }
    if (idx_of(header->shape, std::string(file.substr(header->data_begin))) != file) {
      return "written again as other bytes";
    }
  }
  return "";
}

}  // namespace motley

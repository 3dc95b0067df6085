// The JSON header of a safetensors file, as text and as a validated value. Pure functions of bytes.
// Grammar and limits: docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/safetensors.h"

namespace motley {

inline constexpr std::uint64_t kSafetensorsHeaderBytesMax = 16ULL << 20;
inline constexpr std::size_t kSafetensorsTensorsMax = 100'000;
inline constexpr std::size_t kSafetensorsDimsMax = 8;

struct SafetensorsHeader {
  std::map<std::string, SafetensorsFile::Entry> entries;
  std::map<std::string, std::string> metadata;
};

// The length field at the start of a file.
inline constexpr std::size_t kSafetensorsLengthBytes = 8;

// The header's size, from the untrusted first bytes of a file (`source`) of file_bytes in total.
// kCorrupt if it exceeds the file or the limit. REQUIRES: file_bytes is at least
// kSafetensorsLengthBytes.
[[nodiscard]] Result<std::uint64_t> safetensors_header_bytes(
    std::span<const std::byte, kSafetensorsLengthBytes> first,
    std::uint64_t file_bytes,
    const std::string& source);

// kCorrupt: the file (`source`) is not a complete safetensors file, for this reason.
[[nodiscard]] Error damaged_safetensors(const std::string& source, std::string cause);

// kCorrupt: it is another kind of file.
[[nodiscard]] Error no_safetensors(const std::string& source);

// Parses untrusted header text of a file (`source`) with data_bytes bytes after the header, and
// validates it: each tensor's size matches its shape and dtype, and the tensors fill the data
// section without hole or overlap. kCorrupt names the defect. Memory stays within a few times the
// text.
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                                 std::uint64_t data_bytes,
                                                                 const std::string& source);

// Bytes of one value; 0 for a dtype that is not in the format.
[[nodiscard]] std::uint64_t dtype_bytes(std::string_view dtype);

// Bytes of all values. REQUIRES: fewer than 2^64.
[[nodiscard]] std::uint64_t tensor_bytes(const TensorOutline& tensor);

// Whether a tensor of this name can be written: printable ASCII and not "__metadata__".
[[nodiscard]] bool is_writable_name(const std::string& name);

// The header for tensors in the given order, space-padded to a multiple of 8 bytes. REQUIRES:
// tensor names are distinct and is_writable_name.
[[nodiscard]] std::string format_safetensors_header(
    const std::vector<TensorOutline>& tensors, const std::map<std::string, std::string>& metadata);

}  // namespace motley

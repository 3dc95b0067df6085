#include "checkpoint/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "checkpoint/safetensors_entries.h"

namespace motley {
namespace {

// The size of a tensor from its shape; nullopt if that is more than 2^64 - 1.
std::optional<std::uint64_t> shape_bytes(const SafetensorsFile::Entry& entry) {
  std::uint64_t bytes = dtype_bytes(entry.dtype);
  for (const std::int64_t size : entry.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) return {};
  }
  return bytes;
}

// The defect in the tensors' positions in the data section, or "".
std::string layout_fault(const SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::vector<std::pair<const std::string*, const SafetensorsFile::Entry*>> by_place;
  by_place.reserve(header.entries.size());
  for (const auto& [name, entry] : header.entries) {
    if (dtype_bytes(entry.dtype) == 0) {
      return fmt::format("tensor '{}' has the unknown dtype '{}'", excerpt(name),
                         excerpt(entry.dtype));
    }
    if (entry.begin > entry.end || shape_bytes(entry) != entry.end - entry.begin) {
      return fmt::format("tensor '{}', {} [{}], does not match its offsets {}..{}", excerpt(name),
                         entry.dtype, fmt::join(entry.shape, ", "), entry.begin, entry.end);
    }
    by_place.emplace_back(&name, &entry);
  }
  std::sort(by_place.begin(), by_place.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
  });
  std::uint64_t place = 0;
  for (const auto& [name, entry] : by_place) {
    if (entry->begin != place) {
      return fmt::format("tensor '{}' begins at {}, where {} was expected", excerpt(*name),
                         entry->begin, place);
    }
    place = entry->end;
  }
  if (place != data_bytes) {
    return fmt::format("the tensors need {} bytes, but the file has {}", place, data_bytes);
  }
  return "";
}

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::uint64_t dtype_bytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, std::uint64_t> kBytes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
  for (const auto& [name, bytes] : kBytes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

std::uint64_t tensor_bytes(const TensorOutline& tensor) {
  std::uint64_t bytes = dtype_bytes(tensor.dtype);
  for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

bool is_writable_name(const std::string& name) {
  return is_readable_tensor_name(name) && name != kSafetensorsMetadataKey &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Error damaged_safetensors(const std::string& source, std::string cause) {
  return {ErrorCode::kCorrupt, fmt::format("damaged safetensors file, {}", source),
          std::move(cause), "copy or download the file again"};
}

Error no_safetensors(const std::string& source) {
  return {ErrorCode::kCorrupt, fmt::format("{} is not a safetensors file", source),
          "it does not start with the length of a header and a header",
          "give weights in that format, as a file or its folder"};
}

Result<std::uint64_t> safetensors_header_bytes(
    std::span<const std::byte, kSafetensorsLengthBytes> first,
    std::uint64_t file_bytes,
    const std::string& source) {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, first.data(), sizeof header_bytes);
  if (header_bytes > kSafetensorsHeaderBytesMax ||
      header_bytes > file_bytes - kSafetensorsLengthBytes) {
    return damaged_safetensors(source,
                               fmt::format("its header of {} bytes does not fit into the file of "
                                           "{} bytes, or exceeds the limit {}",
                                           header_bytes, file_bytes, kSafetensorsHeaderBytesMax));
  }
  return header_bytes;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                   std::uint64_t data_bytes,
                                                   const std::string& source) {
  const auto damaged = [&](std::string cause) {
    return damaged_safetensors(source, std::move(cause));
  };
  // The JSON parser takes a zero byte for the end and would ignore the text after it.
  if (text.empty() || text.front() != '{' || text.find('\0') != std::string_view::npos) {
    return damaged("the header does not start with '{' or contains a zero byte");
  }
  SafetensorsHeader header;
  if (std::string fault = read_header_entries(text, header); !fault.empty()) return damaged(fault);
  if (std::string fault = layout_fault(header, data_bytes); !fault.empty()) return damaged(fault);
  return header;
}

std::string format_safetensors_header(const std::vector<TensorOutline>& tensors,
                                      const std::map<std::string, std::string>& metadata) {
  std::string text = fmt::format("{{\"{}\":{{", kSafetensorsMetadataKey);
  for (const auto& [key, value] : metadata) {
    text += fmt::format("{}:{},", quoted(key), quoted(value));
  }
  if (text.back() == ',') text.pop_back();
  text += '}';

  std::set<std::string_view> names;
  std::uint64_t place = 0;
  for (const TensorOutline& tensor : tensors) {
    MOTLEY_CHECK(is_writable_name(tensor.name), "tensor name '{}'", tensor.name);
    MOTLEY_CHECK(names.insert(tensor.name).second, "tensor '{}' given twice", tensor.name);
    MOTLEY_CHECK(dtype_bytes(tensor.dtype) > 0, "dtype '{}'", tensor.dtype);
    const std::uint64_t end = place + tensor_bytes(tensor);
    text +=
        fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                    quoted(tensor.name), tensor.dtype, fmt::join(tensor.shape, ","), place, end);
    place = end;
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace motley

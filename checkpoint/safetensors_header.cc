#include "checkpoint/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace motley {
namespace {

constexpr const char* kMetadataKey = "__metadata__";

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

bool is_readable_name(const std::string& name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), is_control);
}

// Takes the header apart while it is read. A document tree would need many times the memory of
// the text, look keys up in linear time, and keep the last of two equal keys without a word.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  [[nodiscard]] SafetensorsHeader take() { return std::move(header_); }

  [[nodiscard]] const std::string& cause() const { return cause_; }

  bool null() override { return unexpected("null"); }

  bool boolean(bool /*value*/) override { return unexpected("a boolean"); }

  bool number_integer(std::int64_t /*value*/) override { return unexpected("a negative number"); }

  bool number_float(double /*value*/, const std::string& /*text*/) override {
    return unexpected("a number that is not whole");
  }

  bool binary(Json::binary_t& /*value*/) override { return unexpected("binary data"); }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::kShape) {
      if (entry_.shape.size() == kSafetensorsDimsMax) {
        return fail(fmt::format("tensor '{}' has more than {} dimensions", excerpt(tensor_),
                                kSafetensorsDimsMax));
      }
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return fail(fmt::format("tensor '{}' has a dimension of {}", excerpt(tensor_), value));
      }
      entry_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::kOffsets) {
      if (offset_count_ == 2) return unexpected("a third offset");
      (offset_count_++ == 0 ? entry_.begin : entry_.end) = value;
      return true;
    }
    return unexpected("a number");
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[field_] = value;
      return true;
    }
    if (place_ == Place::kTensor && field_ == "dtype") {
      entry_.dtype = value;
      return true;
    }
    return unexpected("a string");
  }

  bool start_object(std::size_t /*count*/) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = tensor_ == kMetadataKey ? Place::kMetadata : Place::kTensor;
      entry_ = {};
      offset_count_ = 0;
      fields_.clear();
    } else {
      return unexpected("an object");
    }
    return true;
  }

  bool key(std::string& name) override {
    if (place_ == Place::kTop) return top_key(name);
    if (!fields_.insert(name).second) {
      return fail(fmt::format("'{}' has the key '{}' twice", excerpt(tensor_), excerpt(name)));
    }
    field_ = name;
    if (place_ == Place::kTensor && name != "dtype" && name != "shape" && name != "data_offsets") {
      return fail(
          fmt::format("tensor '{}' has the unknown key '{}'", excerpt(tensor_), excerpt(name)));
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      if (fields_.size() != 3 || offset_count_ != 2) {
        return fail(
            fmt::format("tensor '{}' needs dtype, shape and two data_offsets", excerpt(tensor_)));
      }
      header_.entries.emplace(tensor_, std::move(entry_));
    }
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(std::size_t /*count*/) override {
    if (place_ != Place::kTensor || field_ == "dtype") return unexpected("an array");
    place_ = field_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position,
                   const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return fail(fmt::format("the header is not JSON in UTF-8, at byte {} of it", position));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  bool fail(std::string cause) {
    cause_ = std::move(cause);
    return false;
  }

  bool unexpected(const char* what) {
    return fail(tensor_.empty()
                    ? fmt::format("the header has {} where none belongs", what)
                    : fmt::format("'{}' has {} where none belongs", excerpt(tensor_), what));
  }

  bool top_key(const std::string& name) {
    tensor_ = name;
    if (name == kMetadataKey) {
      if (std::exchange(has_metadata_, true)) return fail("__metadata__ stands twice");
      return true;
    }
    if (!is_readable_name(name)) {
      return fail("a tensor's name is empty or has control characters");
    }
    if (header_.entries.contains(name))
      return fail(fmt::format("tensor '{}' stands twice", excerpt(name)));
    if (header_.entries.size() == kSafetensorsTensorsMax) {
      return fail(fmt::format("there are more than {} tensors", kSafetensorsTensorsMax));
    }
    return true;
  }

  SafetensorsHeader header_;
  std::string cause_;
  Place place_ = Place::kStart;
  bool has_metadata_ = false;
  std::string tensor_;  // the last key of the outer object
  std::string field_;   // the last key inside it
  std::set<std::string> fields_;
  SafetensorsFile::Entry entry_;
  int offset_count_ = 0;
};

// The bytes of a tensor by its shape; nothing when that is more than 2^64 - 1.
std::optional<std::uint64_t> shape_bytes(const SafetensorsFile::Entry& entry) {
  std::uint64_t bytes = dtype_bytes(entry.dtype);
  for (const std::int64_t size : entry.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) return {};
  }
  return bytes;
}

// What is wrong with the tensors' places in the data section, or "".
std::string layout_fault(const SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::vector<std::pair<const std::string*, const SafetensorsFile::Entry*>> by_place;
  by_place.reserve(header.entries.size());
  for (const auto& [name, entry] : header.entries) {
    if (dtype_bytes(entry.dtype) == 0) {
      return fmt::format("tensor '{}' has the unknown dtype '{}'", excerpt(name),
                         excerpt(entry.dtype));
    }
    if (entry.begin > entry.end || shape_bytes(entry) != entry.end - entry.begin) {
      return fmt::format("tensor '{}', {} [{}], does not fit its place {}..{}", excerpt(name),
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
    return fmt::format("the tensors need {} bytes and the file holds {}", place, data_bytes);
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
  return is_readable_name(name) && name != kMetadataKey &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Error damaged_safetensors(const std::string& source, std::string cause) {
  return {ErrorCode::kCorrupt, fmt::format("damaged safetensors file, {}", source),
          std::move(cause), "copy or download the file again"};
}

Error no_safetensors(const std::string& source) {
  return {ErrorCode::kCorrupt, fmt::format("{} is no safetensors file", source),
          "it begins neither with the length of a header nor with a header",
          "name weights in that format, a file or the folder with it"};
}

Result<std::uint64_t> safetensors_header_bytes(
    std::span<const std::byte, kSafetensorsLengthBytes> first,
    std::uint64_t file_bytes,
    const std::string& source) {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, first.data(), sizeof header_bytes);
  if (header_bytes > kSafetensorsHeaderBytesMax ||
      header_bytes > file_bytes - kSafetensorsLengthBytes) {
    return damaged_safetensors(
        source, fmt::format("its header of {} bytes does not fit the file's {} or the limit {}",
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
  // The JSON reader takes a zero byte for the end and would not look at what comes after it.
  if (text.empty() || text.front() != '{' || text.find('\0') != std::string_view::npos) {
    return damaged("the header does not start with '{' or holds a zero byte");
  }
  HeaderReader reader;
  if (!Json::sax_parse(text, &reader)) return damaged(reader.cause());
  SafetensorsHeader header = reader.take();
  if (std::string fault = layout_fault(header, data_bytes); !fault.empty()) return damaged(fault);
  return header;
}

std::string format_safetensors_header(const std::vector<TensorOutline>& tensors,
                                      const std::map<std::string, std::string>& metadata) {
  std::string text = fmt::format("{{\"{}\":{{", kMetadataKey);
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

#include "checkpoint/safetensors_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>

#include "base/json.h"

namespace motley {
namespace {

bool is_control_byte(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

// Interprets the header while parsing. A document tree would need many times the memory of the
// text, search keys in linear time, and silently retain the last of two equal keys.
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
      place_ = tensor_ == kSafetensorsMetadataKey ? Place::kMetadata : Place::kTensor;
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
      return fail(fmt::format("'{}' has the duplicate key '{}'", excerpt(tensor_), excerpt(name)));
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
    return fail(tensor_.empty() ? fmt::format("the header has {}, which is not allowed there", what)
                                : fmt::format("'{}' has {}, which is not allowed there",
                                              excerpt(tensor_), what));
  }

  bool top_key(const std::string& name) {
    tensor_ = name;
    if (name == kSafetensorsMetadataKey) {
      if (std::exchange(has_metadata_, true)) return fail("duplicate __metadata__");
      return true;
    }
    if (!is_readable_tensor_name(name)) {
      return fail("a tensor's name is empty or has control characters");
    }
    if (header_.entries.contains(name))
      return fail(fmt::format("duplicate tensor '{}'", excerpt(name)));
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

}  // namespace

bool is_readable_tensor_name(const std::string& name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), is_control_byte);
}

std::string read_header_entries(std::string_view text, SafetensorsHeader& header) {
  HeaderReader reader;
  if (!Json::sax_parse(text, &reader)) return reader.cause();
  header = reader.take();
  return "";
}

}  // namespace motley

#include "models/package/argument_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "models/package/package_limits.h"

namespace motley {
namespace {

// A JSON integer that fits 64 bits; nullopt for other values.
std::optional<std::int64_t> whole_number(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  constexpr std::uint64_t kSignedMax = std::numeric_limits<std::int64_t>::max();
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > kSignedMax) return std::nullopt;
  return json.get<std::int64_t>();
}

std::optional<ValueId> value_id(const Json& json, int values) {
  const auto index = whole_number(json);
  if (!index || *index < 0 || *index >= values) return std::nullopt;
  return ValueId{static_cast<int>(*index)};
}

std::optional<BatchInteger> batch_integer(const Json& json) {
  if (!json.is_array() || json.size() != 2) return std::nullopt;
  const auto constant = whole_number(json[0]);
  const auto per_sample = whole_number(json[1]);
  if (!constant || !per_sample) return std::nullopt;
  return BatchInteger{*constant, *per_sample};
}

std::optional<double> named_float(const Json& json) {
  if (!json.is_string()) return std::nullopt;
  const auto& name = json.get_ref<const std::string&>();
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

template <class T>
ReadArgument read_as(const std::optional<T>& value, const char* fault) {
  if (!value) return {{}, fault};
  return {*value, ""};
}

ReadArgument read_values(const Json& json, int values) {
  constexpr const char* kFault = "'values' is not a list of indices of earlier values, or null";
  if (!json.is_array()) return {{}, kFault};
  std::vector<std::optional<ValueId>> ids;
  for (const Json& item : json) {
    ids.push_back(item.is_null() ? std::nullopt : value_id(item, values));
    if (!item.is_null() && !ids.back()) return {{}, kFault};
  }
  return {std::move(ids), ""};
}

ReadArgument read_text(const Json& json) {
  if (!json.is_string() || json.get_ref<const std::string&>().size() > kPackageNameMax) {
    return {{}, "'text' is not a short text"};
  }
  return {json.get<std::string>(), ""};
}

ReadArgument read_memory_format(const Json& json) {
  if (json == "contiguous") return {MemoryFormatName::kContiguous, ""};
  if (json == "preserve") return {MemoryFormatName::kPreserve, ""};
  return {{}, "'memory_format' is neither contiguous nor preserve"};
}

ReadArgument read_object(const Json& json, int values) {
  if (json.size() != 1) return {{}, "an object with one key was expected"};
  const std::string& key = json.begin().key();
  const Json& value = json.begin().value();
  if (key == "value") {
    return read_as(value_id(value, values), "'value' is not the index of an earlier value");
  }
  if (key == "values") return read_values(value, values);
  if (key == "batch") return read_as(batch_integer(value), "'batch' is not two integers");
  if (key == "float") return read_as(named_float(value), "'float' is not inf, -inf or nan");
  if (key == "type") {
    return read_as(value.is_string() ? dtype_of(value.get_ref<const std::string&>()) : std::nullopt,
                   "'type' is not float32, int64 or bool");
  }
  if (key == "text") return read_text(value);
  if (key == "memory_format") return read_memory_format(value);
  return {{}, fmt::format("unknown key '{}'", excerpt(key))};
}

ReadArgument read_scalar(const Json& json) {
  if (json.is_boolean()) return {json.get<bool>(), ""};
  if (json.is_number_float()) return {json.get<double>(), ""};
  return read_as(whole_number(json), "it is not a 64-bit number");
}

ReadArgument read_list(const Json& json) {
  std::vector<ListItem> items;
  for (const Json& item : json) {
    ReadArgument read = item.is_object() ? read_object(item, 0) : read_scalar(item);
    if (!read.fault.empty()) return read;
    if (const auto* const truth = std::get_if<bool>(&read.argument)) {
      items.emplace_back(*truth);
    } else if (const auto* const integer = std::get_if<std::int64_t>(&read.argument)) {
      items.emplace_back(*integer);
    } else if (const auto* const number = std::get_if<double>(&read.argument)) {
      items.emplace_back(*number);
    } else if (const auto* const batch = std::get_if<BatchInteger>(&read.argument)) {
      items.emplace_back(*batch);
    } else {
      return {{}, "a list may contain only numbers, true and false"};
    }
  }
  return {std::move(items), ""};
}

}  // namespace

std::optional<Dtype> dtype_of(std::string_view text) {
  const auto type = constant_type_of(text);
  return type && is_narrow(*type) ? std::nullopt : type;
}

std::optional<Dtype> constant_type_of(std::string_view text) {
  using enum Dtype;
  for (const Dtype type : {kFloat32, kInt64, kBool, kBFloat16, kFloat16, kInt8, kUInt8}) {
    if (text == dtype_name(type)) return type;
  }
  return std::nullopt;
}

std::string_view dtype_name(Dtype type) {
  switch (type) {
    case Dtype::kFloat32:
      return "float32";
    case Dtype::kInt64:
      return "int64";
    case Dtype::kBool:
      return "bool";
    case Dtype::kBFloat16:
      return "bfloat16";
    case Dtype::kFloat16:
      return "float16";
    case Dtype::kInt8:
      return "int8";
    case Dtype::kUInt8:
      return "uint8";
  }
  return "";
}

ReadArgument read_argument(const Json& json, int values) {
  if (json.is_null()) return {};
  if (json.is_object()) return read_object(json, values);
  if (json.is_array()) return read_list(json);
  return read_scalar(json);
}

}  // namespace motley

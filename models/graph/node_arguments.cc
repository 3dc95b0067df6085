#include "models/graph/node_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <ATen/ATen.h>
#include <ATen/core/jit_type.h>

#include "models/package/limits.h"

namespace motley {
namespace {

using c10::TypeKind;

// What a schema wants in one place.
struct Wanted {
  TypeKind kind = TypeKind::AnyType;  // of the elements of a list
  bool optional = false;
  bool is_list = false;
  bool optional_items = false;
  std::int64_t repeat = 0;  // one number stands for so many
};

Wanted wanted_by(const c10::Argument& argument) {
  Wanted wanted;
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) {
    wanted.optional = true;
    type = optional->getElementType();
  }
  if (const auto list = type->cast<c10::ListType>()) {
    wanted.is_list = true;
    type = list->getElementType();
  }
  if (const auto optional = type->cast<c10::OptionalType>()) {
    wanted.optional_items = true;
    type = optional->getElementType();
  }
  wanted.kind = type->kind();
  wanted.repeat = argument.N().value_or(0);
  return wanted;
}

bool is_integer(const Wanted& wanted) {
  return wanted.kind == TypeKind::IntType || wanted.kind == TypeKind::SymIntType;
}

bool is_number(const Wanted& wanted) {
  return wanted.kind == TypeKind::NumberType;
}

at::ScalarType scalar_type(NumberType type) {
  switch (type) {
    case NumberType::kFloat32:
      return at::kFloat;
    case NumberType::kInt64:
      return at::kLong;
    case NumberType::kBool:
      return at::kBool;
  }
  return at::kFloat;
}

bool fits(const ListItem& item, const Wanted& wanted) {
  if (std::holds_alternative<bool>(item)) {
    return wanted.kind == TypeKind::BoolType || is_number(wanted);
  }
  if (std::holds_alternative<double>(item)) {
    return wanted.kind == TypeKind::FloatType || is_number(wanted);
  }
  return is_integer(wanted) || wanted.kind == TypeKind::FloatType || is_number(wanted);
}

// The numbers of a micro-batch of so many samples; nothing where one does not fit 64 bits.
std::optional<std::vector<ListItem>> at_samples(std::vector<ListItem> items, std::int64_t samples) {
  for (ListItem& item : items) {
    const auto* const batch = std::get_if<BatchInteger>(&item);
    if (batch == nullptr) continue;
    const auto value = batch->at(samples);
    if (!value) return std::nullopt;
    item = *value;
  }
  return items;
}

// REQUIRES: the item is a number.
double as_double(const ListItem& item) {
  if (const auto* const integer = std::get_if<std::int64_t>(&item)) {
    return static_cast<double>(*integer);
  }
  return std::get<double>(item);
}

c10::IValue to_scalar(const ListItem& item, bool is_float) {
  if (const auto* const truth = std::get_if<bool>(&item)) return *truth;
  if (is_float || std::holds_alternative<double>(item)) return as_double(item);
  return std::get<std::int64_t>(item);
}

// REQUIRES: the items are of one kind, none depends on the batch any more.
c10::IValue to_list(const std::vector<ListItem>& items, TypeKind kind) {
  if (kind == TypeKind::BoolType) {
    c10::List<bool> list;
    for (const ListItem& item : items) list.push_back(std::get<bool>(item));
    return list;
  }
  if (kind == TypeKind::FloatType) {
    c10::List<double> list;
    for (const ListItem& item : items) list.push_back(as_double(item));
    return list;
  }
  c10::List<std::int64_t> list;
  for (const ListItem& item : items) list.push_back(std::get<std::int64_t>(item));
  return list;
}

bool depends_on_batch(const std::vector<ListItem>& items) {
  return std::ranges::any_of(
      items, [](const ListItem& item) { return std::holds_alternative<BatchInteger>(item); });
}

class Preparer {
 public:
  Preparer(const Node& node, const c10::FunctionSchema& schema) : node_(node), schema_(schema) {}

  NodeArgumentsOr prepare() {
    const auto& wanted = schema_.arguments();
    if (node_.args.size() > wanted.size()) return {{}, "it has more arguments than its schema"};
    std::size_t named = 0;
    for (std::size_t place = 0; place < wanted.size() && fault_.empty(); ++place) {
      const Argument* argument = nullptr;
      if (place < node_.args.size()) argument = &node_.args[place];
      for (const auto& [name, kwarg] : node_.kwargs) {
        if (name != wanted[place].name()) continue;
        if (argument != nullptr) fault_ = "argument '" + name + "' is given twice";
        argument = &kwarg;
        ++named;
      }
      put(place, wanted[place], argument);
    }
    if (fault_.empty() && named != node_.kwargs.size()) {
      fault_ = "it has a named argument that its schema lacks";
    }
    return {std::move(out_), std::move(fault_)};
  }

 private:
  void put(std::size_t place, const c10::Argument& wanted, const Argument* argument) {
    out_.stack.emplace_back();
    if (argument == nullptr) {
      if (wanted.default_value()) {
        out_.stack.back() = *wanted.default_value();
      } else {
        fault_ = "argument '" + wanted.name() + "' is missing";
      }
      return;
    }
    if (!convert(place, *argument, wanted_by(wanted))) {
      fault_ = fmt::format("argument '{}' is not of the type {}", wanted.name(),
                           wanted.real_type()->str());
    }
  }

  bool convert(std::size_t place, const Argument& argument, const Wanted& wanted) {
    if (std::holds_alternative<std::monostate>(argument)) return wanted.optional;
    const bool is_tensor = wanted.kind == TypeKind::TensorType;
    if (const auto* const value = std::get_if<ValueId>(&argument)) {
      out_.tensors.emplace_back(place, *value);
      return is_tensor && !wanted.is_list;
    }
    using Values = std::vector<std::optional<ValueId>>;
    if (const auto* const values = std::get_if<Values>(&argument)) {
      out_.lists.push_back({place, *values, wanted.optional_items});
      const bool whole =
          std::ranges::all_of(*values, [](const auto& value) { return value.has_value(); });
      return is_tensor && wanted.is_list && (whole || wanted.optional_items);
    }
    if (const auto* const text = std::get_if<std::string>(&argument)) {
      out_.stack.back() = *text;
      return wanted.kind == TypeKind::StringType && !wanted.is_list;
    }
    if (const auto* const type = std::get_if<NumberType>(&argument)) {
      out_.stack.back() = static_cast<std::int64_t>(scalar_type(*type));
      return wanted.kind == TypeKind::ScalarTypeType && !wanted.is_list;
    }
    if (const auto* const format = std::get_if<MemoryFormatName>(&argument)) {
      out_.stack.back() = static_cast<std::int64_t>(*format == MemoryFormatName::kContiguous
                                                        ? at::MemoryFormat::Contiguous
                                                        : at::MemoryFormat::Preserve);
      return wanted.kind == TypeKind::MemoryFormatType;
    }
    if (const auto* const list = std::get_if<std::vector<ListItem>>(&argument)) {
      return wanted.is_list && put_numbers(place, *list, wanted);
    }
    return put_number(place, argument, wanted);
  }

  bool put_number(std::size_t place, const Argument& argument, const Wanted& wanted) {
    ListItem item;
    if (const auto* const truth = std::get_if<bool>(&argument)) item = *truth;
    if (const auto* const integer = std::get_if<std::int64_t>(&argument)) item = *integer;
    if (const auto* const number = std::get_if<double>(&argument)) item = *number;
    if (const auto* const batch = std::get_if<BatchInteger>(&argument)) item = *batch;
    if (wanted.is_list) {
      if (wanted.repeat < 1) return false;
      return put_numbers(place, {static_cast<std::size_t>(wanted.repeat), item}, wanted);
    }
    return put_numbers(place, {item}, wanted);
  }

  bool put_numbers(std::size_t place, const std::vector<ListItem>& items, const Wanted& wanted) {
    const auto fits_here = [&](const ListItem& item) { return fits(item, wanted); };
    if (!std::ranges::all_of(items, fits_here)) return false;
    if (wanted.is_list && items.empty() && wanted.kind == TypeKind::TensorType) {
      out_.lists.push_back({place, {}, wanted.optional_items});
      return true;
    }
    if (wanted.is_list && (is_number(wanted) || wanted.kind == TypeKind::TensorType)) return false;
    const bool is_float = wanted.kind == TypeKind::FloatType;
    if (depends_on_batch(items)) {
      out_.batch_numbers.push_back({place, items, wanted.is_list, is_float});
      return true;
    }
    out_.stack.back() =
        wanted.is_list ? to_list(items, wanted.kind) : to_scalar(items.front(), is_float);
    return true;
  }

  const Node& node_;
  const c10::FunctionSchema& schema_;
  NodeArguments out_;
  std::string fault_;
};

}  // namespace

NodeArgumentsOr prepare_arguments(const Node& node, const c10::FunctionSchema& schema) {
  return Preparer(node, schema).prepare();
}

std::string set_samples(NodeArguments& arguments, std::int64_t samples) {
  for (const NodeArguments::BatchNumber& number : arguments.batch_numbers) {
    const auto items = at_samples(number.items, samples);
    if (!items) return fmt::format("a number does not fit 64 bits with {} samples", samples);
    arguments.stack[number.place] =
        number.is_list ? to_list(*items, number.is_float ? TypeKind::FloatType : TypeKind::IntType)
                       : to_scalar(items->front(), number.is_float);
  }
  return "";
}

std::string absurd_size(const NodeArguments& arguments, const c10::FunctionSchema& schema) {
  static constexpr std::array<std::string_view, 10> kSizes = {
      "size",    "sizes",       "self_size", "input_sizes", "input_size",
      "repeats", "num_weights", "steps",     "n",           "m"};
  for (std::size_t place = 0; place < arguments.stack.size(); ++place) {
    const std::string& name = schema.arguments()[place].name();
    if (std::ranges::find(kSizes, name) == kSizes.end()) continue;
    const c10::IValue& value = arguments.stack[place];
    std::vector<std::int64_t> sizes;
    if (value.isIntList()) sizes = value.toIntVector();
    if (value.isInt()) sizes = {value.toInt()};
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) {
      // -1 stands for what is found out from the others.
      if (size < -1 || (size > 0 && size > kTensorCountMax / count)) {
        return fmt::format("{} asks for more than {} elements", name, kTensorCountMax);
      }
      count *= std::max<std::int64_t>(size, 1);
    }
  }
  return "";
}

}  // namespace motley

#include "models/graph/node_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/core/jit_type.h>

#include "models/graph/scalar_type.h"

namespace motley {
namespace {

using c10::TypeKind;

// What a schema requires of an argument.
struct Wanted {
  TypeKind kind = TypeKind::AnyType;  // of a list's elements
  bool optional = false;
  bool is_list = false;
  bool optional_items = false;
  std::int64_t repeat = 0;  // the list length that a single number is expanded to
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

// In which form the schema wants numbers here; nothing where it wants none.
std::optional<NodeArguments::Form> number_form(const Wanted& wanted) {
  using enum NodeArguments::Form;
  switch (wanted.kind) {
    case TypeKind::BoolType:
      return wanted.is_list ? kBools : kNumber;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return wanted.is_list ? kIntegers : kNumber;
    case TypeKind::FloatType:
      return wanted.is_list ? kFloats : kFloat;
    case TypeKind::NumberType:
      if (!wanted.is_list) return kNumber;
      break;
    case TypeKind::TensorType:
      if (!wanted.is_list) return kTensor;
      break;
    default:
      break;
  }
  return std::nullopt;
}

// Whether a number of this kind is accepted here; only integers are converted, to floats.
bool fits(const ListItem& item, TypeKind kind) {
  if (kind == TypeKind::NumberType || kind == TypeKind::TensorType) return true;
  if (std::holds_alternative<bool>(item)) return kind == TypeKind::BoolType;
  if (std::holds_alternative<double>(item)) return kind == TypeKind::FloatType;
  return kind != TypeKind::BoolType;
}

// The numbers for a micro-batch of `samples` samples; nullopt if one does not fit 64 bits.
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

at::Scalar to_scalar(const ListItem& item) {
  if (const auto* const truth = std::get_if<bool>(&item)) return *truth;
  if (const auto* const real = std::get_if<double>(&item)) return *real;
  return std::get<std::int64_t>(item);
}

at::Tensor to_number_tensor(const ListItem& item) {
  at::Tensor tensor =
      at::scalar_tensor(to_scalar(item), at::device(at::kCPU).dtype(to_scalar(item).type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

template <class T, class Convert>
c10::IValue to_list(const std::vector<ListItem>& items, Convert convert) {
  c10::List<T> list;
  list.reserve(items.size());
  for (const ListItem& item : items) list.push_back(convert(item));
  return list;
}

// REQUIRES: the items fit the form, and none depends on the batch any more.
c10::IValue to_value(const std::vector<ListItem>& items, NodeArguments::Form form) {
  switch (form) {
    case NodeArguments::Form::kNumber:
      return to_scalar(items.front());
    case NodeArguments::Form::kFloat:
      return as_double(items.front());
    case NodeArguments::Form::kTensor:
      return to_number_tensor(items.front());
    case NodeArguments::Form::kIntegers:
      return to_list<std::int64_t>(items, [](auto& item) { return std::get<std::int64_t>(item); });
    case NodeArguments::Form::kFloats:
      return to_list<double>(items, as_double);
    case NodeArguments::Form::kBools:
      return to_list<bool>(items, [](auto& item) { return std::get<bool>(item); });
  }
  return {};
}

bool depends_on_batch(const std::vector<ListItem>& items) {
  return std::ranges::any_of(
      items, [](const ListItem& item) { return std::holds_alternative<BatchInteger>(item); });
}

class Preparer {
 public:
  Preparer(const Node& node, const c10::FunctionSchema& schema, c10::Device device)
      : node_(node), schema_(schema), device_(device) {}

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
    const bool is_none = argument == nullptr || std::holds_alternative<std::monostate>(*argument);
    if (is_none && wanted_by(wanted).kind == TypeKind::DeviceObjType) {
      out_.stack.back() = device_;
      return;
    }
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
    if (const auto* const type = std::get_if<Dtype>(&argument)) {
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
    if (wanted.is_list && items.empty() && wanted.kind == TypeKind::TensorType) {
      out_.lists.push_back({place, {}, wanted.optional_items});
      return true;
    }
    const auto form = number_form(wanted);
    const bool all_fit =
        std::ranges::all_of(items, [&](const ListItem& item) { return fits(item, wanted.kind); });
    if (!form || !all_fit) return false;
    if (depends_on_batch(items)) {
      out_.batch_numbers.push_back({place, items, *form});
    } else {
      out_.stack.back() = to_value(items, *form);
    }
    return true;
  }

  const Node& node_;
  const c10::FunctionSchema& schema_;
  c10::Device device_;
  NodeArguments out_;
  std::string fault_;
};

}  // namespace

NodeArgumentsOr prepare_arguments(const Node& node,
                                  const c10::FunctionSchema& schema,
                                  c10::Device device) {
  return Preparer(node, schema, device).prepare();
}

std::string set_samples(NodeArguments& arguments, std::int64_t samples) {
  for (const NodeArguments::BatchNumber& number : arguments.batch_numbers) {
    const auto items = at_samples(number.items, samples);
    if (!items) return fmt::format("a number does not fit 64 bits with {} samples", samples);
    arguments.stack[number.place] = to_value(*items, number.form);
  }
  return "";
}

}  // namespace motley

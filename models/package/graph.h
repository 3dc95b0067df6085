// Graph: the computation of a package's layer, as a list of ATen operations on numbered values. In
// a graph that read_package returns, values are defined before they are used, operations are in the
// list of allowed ones (operations.h), and roles match the layers that use it. Format:
// docs/formats/package.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/package/tensor_spec.h"

namespace motley {

// The meaning of a value to the layer; names in package.json: role_name.
enum class Role {
  kInput,
  kParameter,
  kConstant,
  kStatistic,
  kTarget,
  kGrad,
  kSaved,
  kQueued,
  kOutput,
  kLoss,
  kCount,
  kCorrect,
  kObserved,
  kInputGrad,
  kParameterGrad,
};

inline constexpr std::size_t kRoles = 15;

// "input", "parameter_grad", …
[[nodiscard]] std::string_view role_name(Role role);

struct RoleIndex {
  Role role = Role::kInput;
  int index = 0;

  friend bool operator==(const RoleIndex&, const RoleIndex&) = default;
};

// A value of a graph: its inputs have the first numbers, results of nodes follow.
struct ValueId {
  int index = 0;

  friend bool operator==(const ValueId&, const ValueId&) = default;
};

// An integer that depends on the number of samples B of the micro-batch: constant + per_sample * B.
struct BatchInteger {
  std::int64_t constant = 0;
  std::int64_t per_sample = 0;

  // nullopt if it does not fit an integer.
  [[nodiscard]] std::optional<std::int64_t> at(std::int64_t samples) const;

  friend bool operator==(const BatchInteger&, const BatchInteger&) = default;
};

enum class MemoryFormatName { kContiguous, kPreserve };

// An element of a list of numbers.
using ListItem = std::variant<bool, std::int64_t, double, BatchInteger>;

using Argument = std::variant<std::monostate,  // none
                              bool,
                              std::int64_t,
                              double,
                              ValueId,
                              std::vector<std::optional<ValueId>>,
                              BatchInteger,
                              Dtype,
                              std::string,
                              MemoryFormatName,
                              std::vector<ListItem>>;

struct Node {
  std::string_view operation;  // "aten::add.Tensor", from the list of allowed operations
  std::vector<Argument> args;
  std::vector<std::pair<std::string, Argument>> kwargs;
  ValueId first_result;
  int results = 0;
  std::vector<ValueId> dies;  // not used after this node, including unused results of it
};

struct Graph {
  std::vector<RoleIndex> takes;  // values 0, 1, …
  std::vector<Node> nodes;       // in an order of execution
  std::vector<std::pair<RoleIndex, ValueId>> gives;
  int values = 0;
  std::vector<ValueId> unread;  // inputs that no node reads and that are not returned

  // The value returned in this role, if any.
  [[nodiscard]] std::optional<ValueId> given(RoleIndex role) const;
  // The number of results in this role. Their indices are 0, 1, …, except in the roles of
  // gradients.
  [[nodiscard]] int count_given(Role role) const;
};

struct LayerGraph {
  // Bytes of one sample, except the last, for plans with devices that cannot be measured.
  struct Memory {
    std::int64_t saved_bytes = 0;
    std::int64_t queued_bytes = 0;
    std::int64_t workspace_bytes = 0;
    // Whatever the number of samples: temporary values of narrow constants.
    std::int64_t converted_bytes = 0;
  };

  Graph forward;
  Graph input_part;
  Graph weight_part;
  Graph evaluate;
  std::optional<Graph> score;  // in the last layer
  Memory memory;
};

}  // namespace motley

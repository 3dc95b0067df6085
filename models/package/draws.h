// The random draws that the nodes of a package's graphs describe (docs/formats/package.md).
// models/numbers/random_numbers.h computes their values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/package/graph.h"

namespace motley {

enum class DrawKind { kUniform, kNormal, kExponential, kIntegers };

// The kind of an operation such as "motley::normal"; nullopt for operations that do not draw.
[[nodiscard]] std::optional<DrawKind> draw_kind(std::string_view operation);

// The draw of a node motley::dropout_mask.
struct DrawnMask {
  double p = 0;
  int index = 0;  // in the layer
};

// REQUIRES: the node is a motley::dropout_mask that the reader accepted (operation_rules.h).
[[nodiscard]] DrawnMask mask_of(const Node& node);

// The draw of a node with a DrawKind.
struct DrawnNumbers {
  DrawKind kind = DrawKind::kUniform;
  std::vector<BatchInteger> sizes;
  std::int64_t low = 0;     // integers lie in [low, low + count)
  std::uint64_t count = 1;  // at most 2^32
  int index = 0;            // in the layer

  // The first dimension that grows with the batch; nullopt if all samples share the numbers.
  [[nodiscard]] std::optional<std::size_t> batch_dim() const;
  // The sizes for that many samples; nullopt if one is negative or the tensor exceeds its limit.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> sizes_of(std::int64_t samples) const;
};

// Why the arguments of a node with a DrawKind are invalid, or "".
[[nodiscard]] std::string draw_fault(const Node& node);

// REQUIRES: draw_kind(node.operation) has a value and draw_fault(node) is "".
[[nodiscard]] DrawnNumbers draw_of(const Node& node);

}  // namespace motley

// The random numbers that a layer of a package draws, as its graphs ask for them
// (docs/formats/package.md). Their values are in models/numbers/random_numbers.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/package/graph.h"

namespace motley {

enum class DrawKind { kUniform, kNormal, kExponential, kIntegers };

// Of the operation "motley::normal", …; nothing for others.
[[nodiscard]] std::optional<DrawKind> draw_kind(std::string_view operation);

// What a node motley::dropout_mask draws.
struct DrawnMask {
  double p = 0;
  int index = 0;  // in the layer
};

// REQUIRES: the node is such a one that was read (operation_rules.h).
[[nodiscard]] DrawnMask mask_of(const Node& node);

// What a node with a kind draws.
struct DrawnNumbers {
  DrawKind kind = DrawKind::kUniform;
  std::vector<BatchInteger> sizes;
  std::int64_t low = 0;     // integers are from low
  std::uint64_t count = 1;  // to below low + count; at most 2^32
  int index = 0;            // in the layer

  // The first dimension that grows with the batch; nothing where all samples share the numbers.
  [[nodiscard]] std::optional<std::size_t> batch_dim() const;
  // With so many samples; nothing where a size is negative, or all are more than a tensor may have.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> sizes_of(std::int64_t samples) const;
};

// Why a node with such an operation is none, or "".
[[nodiscard]] std::string draw_fault(const Node& node);

// REQUIRES: draw_kind(node.operation) is a kind and draw_fault(node) is "".
[[nodiscard]] DrawnNumbers draw_of(const Node& node);

}  // namespace motley

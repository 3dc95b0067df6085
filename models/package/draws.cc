#include "models/package/draws.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/package/operations.h"
#include "models/package/package_limits.h"

namespace motley {
namespace {

constexpr std::uint64_t kIntegersMax = std::uint64_t{1} << 32;

constexpr std::array<std::pair<std::string_view, DrawKind>, 4> kDrawKinds = {{
    {kUniformNumbers, DrawKind::kUniform},
    {kNormalNumbers, DrawKind::kNormal},
    {kExponentialNumbers, DrawKind::kExponential},
    {kIntegerNumbers, DrawKind::kIntegers},
}};

// The list item as a size; nullopt if it is not a non-negative integer.
std::optional<BatchInteger> size_in(const ListItem& item) {
  if (const auto* const batch = std::get_if<BatchInteger>(&item)) return *batch;
  const auto* const fixed = std::get_if<std::int64_t>(&item);
  if (fixed == nullptr || *fixed < 0) return std::nullopt;
  return BatchInteger{*fixed, 0};
}

}  // namespace

std::optional<DrawKind> draw_kind(std::string_view operation) {
  for (const auto& [name, kind] : kDrawKinds) {
    if (name == operation) return kind;
  }
  return std::nullopt;
}

DrawnMask mask_of(const Node& node) {
  const auto* const whole_p = std::get_if<std::int64_t>(&node.args[1]);
  return {whole_p != nullptr ? static_cast<double>(*whole_p) : std::get<double>(node.args[1]),
          static_cast<int>(std::get<std::int64_t>(node.args[2]))};
}

std::optional<std::size_t> DrawnNumbers::batch_dim() const {
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim].per_sample != 0) return dim;
  }
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> DrawnNumbers::sizes_of(std::int64_t samples) const {
  std::vector<std::int64_t> made;
  std::int64_t elements = 1;
  for (const BatchInteger& size : sizes) {
    const std::optional<std::int64_t> length = size.at(samples);
    if (!length || *length < 0 || (*length > 0 && elements > kTensorCountMax / *length)) {
      return std::nullopt;
    }
    elements *= std::max<std::int64_t>(*length, 1);
    made.push_back(*length);
  }
  return made;
}

std::string draw_fault(const Node& node) {
  const bool is_integers = draw_kind(node.operation) == DrawKind::kIntegers;
  const std::string fault =
      is_integers
          ? "it has sizes, two integers in ascending order at most 2^32 apart, and a place from 0 "
            "to 255, and returns one value"
          : "it has sizes and a place from 0 to 255, and returns one value";
  if (node.args.size() != (is_integers ? 4U : 2U) || !node.kwargs.empty() || node.results != 1) {
    return fault;
  }
  const auto* const sizes = std::get_if<std::vector<ListItem>>(&node.args[0]);
  if (sizes == nullptr || sizes->size() > kTensorDimsMax) return fault;
  for (const ListItem& size : *sizes) {
    if (!size_in(size)) return fault;
  }
  for (std::size_t i = 1; i < node.args.size(); ++i) {
    if (!std::holds_alternative<std::int64_t>(node.args[i])) return fault;
  }
  const std::int64_t place = std::get<std::int64_t>(node.args.back());
  if (place < 0 || place >= kDrawPlaces) return fault;
  if (!is_integers) return "";
  const auto low = std::get<std::int64_t>(node.args[1]);
  const auto high = std::get<std::int64_t>(node.args[2]);
  const std::uint64_t count = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  return low < high && count <= kIntegersMax ? "" : fault;
}

DrawnNumbers draw_of(const Node& node) {
  DrawnNumbers draw;
  draw.kind = *draw_kind(node.operation);
  for (const ListItem& size : std::get<std::vector<ListItem>>(node.args[0])) {
    draw.sizes.push_back(*size_in(size));
  }
  draw.index = static_cast<int>(std::get<std::int64_t>(node.args.back()));
  if (draw.kind == DrawKind::kIntegers) {
    draw.low = std::get<std::int64_t>(node.args[1]);
    draw.count = static_cast<std::uint64_t>(std::get<std::int64_t>(node.args[2])) -
                 static_cast<std::uint64_t>(draw.low);
  }
  return draw;
}

}  // namespace motley

#include "models/package/draws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/philox.h"
#include "base/portable_log.h"
#include "models/package/limits.h"
#include "models/package/operations.h"

namespace motley {

// M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied
// Statistics 37 (1988), PPND16. Its third part begins at a probability of e^-25, below the smallest
// of a word.
const QuantilePart kQuantileOfMiddle = {
    {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
     4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
     1.3314166789178437745e+2, 3.3871328727963666080e+0},
    {5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4,
     2.1213794301586595867e+4, 5.3941960214247511077e+3, 6.8718700749205790830e+2,
     4.2313330701600911252e+1, 1.0}};
const QuantilePart kQuantileOfTail = {
    {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e+0, 3.64784832476320460504e+0, 5.76949722146069140550e+0,
     4.63033784615654529590e+0, 1.42343711074968357734e+0},
    {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e+0,
     2.05319162663775882187e+0, 1.0}};

namespace {

constexpr std::uint64_t kIntegersMax = std::uint64_t{1} << 32;

constexpr std::array<std::pair<std::string_view, DrawKind>, 4> kDrawKinds = {{
    {kUniformNumbers, DrawKind::kUniform},
    {kNormalNumbers, DrawKind::kNormal},
    {kExponentialNumbers, DrawKind::kExponential},
    {kIntegerNumbers, DrawKind::kIntegers},
}};

// The integer among a list's numbers; nothing for what is none.
std::optional<BatchInteger> size_in(const ListItem& item) {
  if (const auto* const batch = std::get_if<BatchInteger>(&item)) return *batch;
  const auto* const fixed = std::get_if<std::int64_t>(&item);
  if (fixed == nullptr || *fixed < 0) return std::nullopt;
  return BatchInteger{*fixed, 0};
}

double quotient(const QuantilePart& part, double x) {
  double above = part.above[0];
  double below = part.below[0];
  for (int k = 1; k < 8; ++k) {
    above = above * x + part.above[k];
    below = below * x + part.below[k];
  }
  return above / below;
}

}  // namespace

std::optional<DrawKind> draw_kind(std::string_view operation) {
  for (const auto& [name, kind] : kDrawKinds) {
    if (name == operation) return kind;
  }
  return std::nullopt;
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
      is_integers ? "it takes sizes, two integers that are at most 2^32 apart, the second the larger, "
                    "and a place from 0 to 255, and makes one value"
                  : "it takes sizes and a place from 0 to 255, and makes one value";
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

float uniform_number(std::uint32_t word) {
  return to_unit_float(word);
}

float normal_number(std::uint32_t word) {
  const double p = to_open_unit(word);
  const double q = p - 0.5;
  if (std::abs(q) <= kQuantileMiddle) {
    return static_cast<float>(q * quotient(kQuantileOfMiddle, kQuantileMiddleSquare - q * q));
  }
  const double r = std::sqrt(-portable_log(std::min(p, 1.0 - p))) - kQuantileTailOffset;
  const double size = quotient(kQuantileOfTail, r);
  return static_cast<float>(q < 0 ? -size : size);
}

float exponential_number(std::uint32_t word) {
  return static_cast<float>(-portable_log(to_open_unit(word)));
}

std::int64_t integer_number(std::uint64_t bits, std::int64_t low, std::uint64_t count) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  const std::uint64_t upper = (bits >> 32) * count + ((bits & kLow) * count >> 32);
  return low + static_cast<std::int64_t>(upper >> 32);
}

}  // namespace motley

#include "models/graph/turning_points.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace motley {
namespace {

using namespace std::string_view_literals;

// Names without overloads.
constexpr std::array kTurning = {"aten::abs"sv,
                                 "aten::adaptive_max_pool2d"sv,
                                 "aten::amax"sv,
                                 "aten::amin"sv,
                                 "aten::aminmax"sv,
                                 "aten::ceil"sv,
                                 "aten::clamp"sv,
                                 "aten::clamp_max"sv,
                                 "aten::clamp_min"sv,
                                 "aten::floor"sv,
                                 "aten::fmax"sv,
                                 "aten::fmin"sv,
                                 "aten::frac"sv,
                                 "aten::ge"sv,
                                 "aten::gt"sv,
                                 "aten::hardshrink"sv,
                                 "aten::hardsigmoid"sv,
                                 "aten::hardswish"sv,
                                 "aten::hardtanh"sv,
                                 "aten::le"sv,
                                 "aten::leaky_relu"sv,
                                 "aten::lt"sv,
                                 "aten::max"sv,
                                 "aten::max_pool2d_with_indices"sv,
                                 "aten::max_pool3d_with_indices"sv,
                                 "aten::maximum"sv,
                                 "aten::min"sv,
                                 "aten::minimum"sv,
                                 "aten::prelu"sv,
                                 "aten::relu"sv,
                                 "aten::round"sv,
                                 "aten::sgn"sv,
                                 "aten::sign"sv,
                                 "aten::softshrink"sv,
                                 "aten::sort"sv,
                                 "aten::topk"sv,
                                 "aten::trunc"sv};

}  // namespace

bool has_turning_points(const Graph& forward) {
  return std::ranges::any_of(forward.nodes, [](const Node& node) {
    const std::string_view name = node.operation.substr(0, node.operation.find('.'));
    return std::ranges::find(kTurning, name) != kTurning.end();
  });
}

}  // namespace motley

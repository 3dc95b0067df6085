#include "checkpoint/save/finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace motley {
namespace {

// By its bits, so that no option of the compiler can take the answer for granted: an exponent of
// all ones is an infinity or a NaN.
bool is_finite(float value) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  return (std::bit_cast<std::uint32_t>(value) & kExponent) != kExponent;
}

}  // namespace

Result<void> require_finite(const std::vector<TensorView>& parameters) {
  for (const TensorView& tensor : parameters) {
    const auto finite = std::ranges::count_if(tensor.values, is_finite);
    const auto all = static_cast<std::ptrdiff_t>(tensor.values.size());
    if (finite == all) continue;
    return Error{
        ErrorCode::kDiverged, "the training diverged: its parameters are not finite any more",
        fmt::format("{} of the {} values of {} are infinite or not a number", all - finite, all,
                    tensor.name),
        "lower train.lr, set train.clip or lengthen train.warmup_steps; nothing of this step was "
        "saved"};
  }
  return {};
}

}  // namespace motley

#include "models/package/operations.h"

#include <algorithm>

namespace motley {
namespace {

constexpr std::string_view kOperations[] = {
#include "models/package/operation_list.inc"
};

static_assert(std::is_sorted(std::begin(kOperations), std::end(kOperations)),
              "python/motley/operations.txt is not sorted");

constexpr std::string_view kOwn[] = {kDropoutMask, kUniformNumbers, kNormalNumbers,
                                     kExponentialNumbers, kIntegerNumbers};

}  // namespace

std::span<const std::string_view> allowed_operations() {
  return kOperations;
}

std::optional<std::string_view> find_operation(std::string_view name) {
  for (const std::string_view own : kOwn) {
    if (name == own) return own;
  }
  const auto* const found = std::lower_bound(std::begin(kOperations), std::end(kOperations), name);
  if (found == std::end(kOperations) || *found != name) return std::nullopt;
  return *found;
}

}  // namespace motley

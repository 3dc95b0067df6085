#include "cluster/run_record/arithmetic_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/result.h"
#include "plan/device_kinds.h"

namespace motley {
namespace {

constexpr std::size_t kArithmeticBytesMax = 300;  // of a worker
constexpr std::size_t kKindsShown = 4;

bool is_processor(const RankPlan& rank) {
  const DeviceCapabilities capabilities = capabilities_of(rank.device);
  return capabilities.computes && !is_accelerator(capabilities);
}

}  // namespace

ArithmeticCheck::ArithmeticCheck(const Plan& plan) : plan_(plan) {
  for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
    if (is_processor(plan.ranks[rank.index()])) awaited_.insert(rank);
  }
}

std::optional<std::string> ArithmeticCheck::add(Rank rank, const std::string& text) {
  if (awaited_.erase(rank) == 0) return {};
  having_[excerpt(text, kArithmeticBytesMax)].insert(plan_.ranks[rank.index()].machine);
  if (!awaited_.empty() || having_.size() < 2) return {};
  return fmt::format(
      "the machines' processors round differently: {}; losses differ in their last bits from those "
      "of another plan (docs/numerics.md). For equal bits use the same libraries, and start "
      "motley-stage with the same OPENBLAS_CORETYPE, ATEN_CPU_CAPABILITY and ONEDNN_MAX_CPU_ISA",
      differences());
}

// "box with LibTorch …; desk, lab with LibTorch …"
std::string ArithmeticCheck::differences() const {
  std::vector<std::string> parts;
  for (const auto& [text, machines] : having_) {
    if (parts.size() == kKindsShown) {
      parts.emplace_back("…");
      break;
    }
    parts.push_back(fmt::format("{} with {}", fmt::join(machines, ", "), text));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace motley

// WaitTimes: how long a rank waited for others, by what it waited for.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>

namespace motley {

enum class WaitCause { kActivation, kGradient, kSum, kVote, kOther };

// As files and messages write them: [WaitCause]. kActivation: of the stage before, with targets;
// kGradient: of the stage behind; kSum: of gradients over replicas and of tied parameters.
inline constexpr std::array<const char*, 5> kWaitCauseNames = {"activation", "gradient", "sum",
                                                               "vote", "other"};

struct WaitTimes {
  std::array<double, kWaitCauseNames.size()> seconds{};  // [WaitCause]

  [[nodiscard]] double& of(WaitCause cause) { return seconds[static_cast<std::size_t>(cause)]; }

  [[nodiscard]] double of(WaitCause cause) const {
    return seconds[static_cast<std::size_t>(cause)];
  }

  // Added up in the order of the causes, wherever it is asked for.
  [[nodiscard]] double total() const {
    return std::accumulate(seconds.begin(), seconds.end(), 0.0);
  }

  friend bool operator==(const WaitTimes&, const WaitTimes&) = default;
};

}  // namespace motley

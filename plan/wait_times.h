// WaitTimes: the time for which a rank waited for other ranks, by cause.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>

namespace motley {

enum class WaitCause { kActivation, kGradient, kSum, kVote, kOther };

// The names in files and messages: [WaitCause]. kActivation: from the preceding stage, with
// targets; kGradient: from the following stage; kSum: all-reduces of gradients over replicas and of
// tied parameters.
inline constexpr std::array<const char*, 5> kWaitCauseNames = {"activation", "gradient", "sum",
                                                               "vote", "other"};

struct WaitTimes {
  std::array<double, kWaitCauseNames.size()> seconds{};  // [WaitCause]

  [[nodiscard]] double& of(WaitCause cause) { return seconds[static_cast<std::size_t>(cause)]; }

  [[nodiscard]] double of(WaitCause cause) const {
    return seconds[static_cast<std::size_t>(cause)];
  }

  // Always added in the order of the causes.
  [[nodiscard]] double total() const {
    return std::accumulate(seconds.begin(), seconds.end(), 0.0);
  }

  friend bool operator==(const WaitTimes&, const WaitTimes&) = default;
};

}  // namespace motley

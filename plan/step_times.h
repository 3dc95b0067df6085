// StepTimes: the time of one rank in a step, by cause; and sums of them. WaitTimes: the time for
// which it waited for other ranks.
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

struct StepTimes {
  double compute_s = 0;    // all time except waiting; includes the next two
  double codec_s = 0;      // transfers between chunks: encoding, decoding, passing
  double optimizer_s = 0;  // updating the parameters
  WaitTimes wait_s;        // for messages, without work to compute
};

}  // namespace motley

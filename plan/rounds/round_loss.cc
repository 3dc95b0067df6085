#include "plan/rounds/round_loss.h"

#include <algorithm>
#include <cmath>

namespace motley {

double expected_loss_increase(std::int64_t steps, std::int64_t rounds, std::int64_t overlap_steps) {
  constexpr double kPerDoubling = 0.002;
  constexpr double kOfFewRounds = 0.05;
  constexpr double kOfOverlap = 0.013;  // with a whole round
  return kPerDoubling * std::log2(std::max(1.0, static_cast<double>(steps) / 5)) +
         kOfFewRounds / static_cast<double>(std::max<std::int64_t>(rounds, 1)) +
         kOfOverlap * std::sqrt(static_cast<double>(overlap_steps) / static_cast<double>(steps));
}

double token_factor(std::int64_t steps, std::int64_t rounds, std::int64_t overlap_steps) {
  // The loss falls about as the tenth root of the tokens.
  constexpr double kLossExponent = 0.1;
  return std::pow(1 + expected_loss_increase(steps, rounds, overlap_steps), 1 / kLossExponent);
}

}  // namespace motley

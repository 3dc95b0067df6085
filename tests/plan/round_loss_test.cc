#include "plan/rounds/round_loss.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(ExpectedLossIncrease, GrowsWithTheLengthOfARoundAndFallsWithTheirNumber) {
  double before = 0;
  for (const std::int64_t steps : {10, 30, 60, 200}) {
    const double increase = expected_loss_increase(steps, 100, 0);
    EXPECT_GT(increase, before);
    EXPECT_GT(increase, expected_loss_increase(steps, 1000, 0));
    EXPECT_LT(increase, expected_loss_increase(steps, 100, steps / 2));
    before = increase;
    EXPECT_GT(token_factor(steps, 100, 0), 1);
    EXPECT_LT(token_factor(steps, 100, steps / 2), 1.4);
  }
}

}  // namespace
}  // namespace motley

#include "cluster/run/pace_watch.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

class Watched {
 public:
  // Lines of the next `steps` steps of the first rank.
  std::vector<std::string> run(int steps, double compute_s) {
    std::vector<std::string> lines;
    for (int i = 0; i < steps; ++i) {
      ++step_;
      if (const auto line = watch_.add(Rank{0}, step_, compute_s)) lines.push_back(*line);
      EXPECT_EQ(watch_.add(Rank{1}, step_, 1), std::nullopt);
    }
    return lines;
  }

 private:
  PaceWatch watch_{{"box (cpu)", "desktop (cpu)"}};
  std::int64_t step_ = 0;
};

TEST(PaceWatch, NamesTheMachineThatBecomesSlowOnce) {
  Watched box;
  EXPECT_TRUE(box.run(30, 2).empty());
  const auto lines = box.run(20, 4);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(
      lines[0].starts_with("box (cpu): 2.0 times slower than at the start, computing 4 s a step "
                           "instead of 2 s (step 33)"))
      << lines[0];
}

// Whenever it happens; what a step takes on the real clock is bench/slowed_lan's business.
TEST(PaceWatch, NamesItWithinAWindowOfSteps) {
  for (int steps_before = 6; steps_before < 40; ++steps_before) {
    Watched box;
    EXPECT_TRUE(box.run(steps_before, 0.3).empty());
    EXPECT_EQ(box.run(static_cast<int>(PaceWatch::kWindow), 0.6).size(), 1U) << steps_before;
  }
}

TEST(PaceWatch, DoesNotMindTimesThatVaryByLessThanItsLimit) {
  Watched box;
  for (int round = 0; round < 30; ++round) {
    EXPECT_TRUE(box.run(1, 2.0).empty());
    EXPECT_TRUE(box.run(1, 2.7).empty());
    EXPECT_TRUE(box.run(1, 2.2).empty());
  }
}

TEST(PaceWatch, SaysWhenItIsFastAgain) {
  Watched box;
  box.run(10, 2);
  box.run(10, 5);
  const auto lines = box.run(10, 2.1);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], "box (cpu): as fast as at the start again (step 23)");
}

TEST(PaceWatch, DoesNotMindTheFirstStepOrSingleOnes) {
  Watched box;
  EXPECT_TRUE(box.run(1, 9).empty());
  EXPECT_TRUE(box.run(6, 2).empty());
  EXPECT_TRUE(box.run(2, 9).empty());
  EXPECT_TRUE(box.run(6, 2).empty());
}

}  // namespace
}  // namespace motley

#include "cluster/run_record/straggler_detector.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

class Watched {
 public:
  // The warnings of the next `steps` steps of the first rank; a step takes two seconds.
  std::vector<std::string> run(int steps, double compute_s) {
    std::vector<std::string> lines;
    for (int i = 0; i < steps; ++i) {
      ++step_;
      const double at_s = 2.0 * static_cast<double>(step_);
      if (const auto line = watch_.add(Rank{0}, step_, compute_s, at_s)) lines.push_back(*line);
      EXPECT_EQ(watch_.add(Rank{1}, step_, 1, at_s), std::nullopt);
    }
    return lines;
  }

 private:
  StragglerDetector watch_{{"box (cpu)", "desktop (cpu)"}};
  std::int64_t step_ = 0;
};

TEST(StragglerDetector, NamesTheMachineThatStaysSlowOnce) {
  Watched box;
  EXPECT_TRUE(box.run(30, 2).empty());
  const auto lines = box.run(100, 4);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with(
      "box (cpu): 2.0 times slower than at the start since step 33 (straggler), "
      "computing 4 s a step instead of 2 s; "))
      << lines[0];
}

// At whichever step it begins; bench/slowed_lan measures the same on a real clock.
TEST(StragglerDetector, NamesItWithinAWindowAndTheStepsThatItMustLast) {
  constexpr int kSteps =
      static_cast<int>(StragglerDetector::kWindow + StragglerDetector::kPersistentSteps);
  for (int steps_before = 6; steps_before < 40; ++steps_before) {
    Watched box;
    EXPECT_TRUE(box.run(steps_before, 0.3).empty());
    EXPECT_EQ(box.run(kSteps, 0.6).size(), 1U) << steps_before;
  }
}

// Another program that runs now and then.
TEST(StragglerDetector, DoesNotMindAMachineThatIsFastAgainSoon) {
  Watched box;
  EXPECT_TRUE(box.run(30, 2).empty());
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(box.run(15, 5).empty());
    EXPECT_TRUE(box.run(15, 2).empty());
  }
}

TEST(StragglerDetector, DoesNotMindManySlowStepsThatAreOverInAMoment) {
  StragglerDetector watch({"box (cpu)"});
  for (int step = 1; step <= 200; ++step) {
    const double compute_s = step < 20 ? 0.01 : 0.02;
    EXPECT_EQ(watch.add(Rank{0}, step, compute_s, 0.1 * step), std::nullopt);
  }
}

TEST(StragglerDetector, DoesNotMindTimesThatVaryByLessThanItsLimit) {
  Watched box;
  for (int round = 0; round < 100; ++round) {
    EXPECT_TRUE(box.run(1, 2.0).empty());
    EXPECT_TRUE(box.run(1, 2.7).empty());
    EXPECT_TRUE(box.run(1, 2.2).empty());
  }
}

}  // namespace
}  // namespace motley

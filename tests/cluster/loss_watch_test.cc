#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "cluster/run_record/divergence_detector.h"

namespace motley {
namespace {

using testing::HasSubstr;

class Watched {
 public:
  std::optional<std::string> add(double loss) {
    return watch_.add({.step = ++step_, .outcome = {.loss = loss, .lr = 1e-3, .grad_norm = 35}});
  }

  // The number of warnings.
  int run(int steps, double loss) {
    int lines = 0;
    for (int i = 0; i < steps; ++i) lines += add(loss).has_value() ? 1 : 0;
    return lines;
  }

 private:
  LossMonitor watch_;
  std::int64_t step_ = 0;
};

TEST(LossMonitor, SaysASpikeOnceWithItsStepAndValues) {
  Watched run;
  EXPECT_EQ(run.run(40, 2), 0);
  const auto line = run.add(7.8125);
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(*line, HasSubstr("jumped to 7.812 at step 41, from 2.000"));
  EXPECT_THAT(*line, HasSubstr("gradient norm 35"));
  EXPECT_EQ(run.run(10, 6), 0) << "the same spike";
  EXPECT_EQ(run.run(5, 2), 0);
  EXPECT_TRUE(run.add(6).has_value()) << "another";
}

// A run that diverges from its first step has no usual loss.
TEST(LossMonitor, SaysARiseFromTheFirstStepOnOnce) {
  Watched run;
  EXPECT_EQ(run.run(1, 5.5), 0);
  EXPECT_EQ(run.run(2, 18.9), 0) << "it may come back";
  EXPECT_EQ(run.run(1, 5), 0);
  EXPECT_EQ(run.run(2, 18.9), 0);
  const auto line = run.add(136);
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(*line, HasSubstr("has risen to 136.000 at step 7, from 5.500 at the first"));
  EXPECT_THAT(*line, HasSubstr("lower train.lr"));
  EXPECT_EQ(run.run(20, 200), 0);
}

TEST(LossMonitor, TakesALossThatStaysHighForTheUsual) {
  Watched run;
  EXPECT_EQ(run.run(40, 2), 0);
  EXPECT_EQ(run.run(500, 4), 1);
}

// Losses as in a converging run: they fall, level out, and vary from batch to batch.
TEST(LossMonitor, LeavesAQuietRunInPeace) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 0.05 + 0.01 * (seed % 10));
    Watched run;
    for (int step = 1; step <= 2000; ++step) {
      const double falling = 1.5 + 4 * std::exp(-step / 150.0);
      EXPECT_EQ(run.add(falling + noise(random)), std::nullopt)
          << "seed " << seed << " step " << step;
    }
  }
}

TEST(LossMonitor, DoesNotLookAtWhatIsNoLoss) {
  LossMonitor watch;
  for (int step = 1; step <= 100; ++step) {
    const bool odd = step > 50;
    EXPECT_EQ(watch.add({.step = step, .outcome = {.loss = odd ? 99.0 : 2.0, .skipped = odd}}),
              std::nullopt);
  }
}

}  // namespace
}  // namespace motley

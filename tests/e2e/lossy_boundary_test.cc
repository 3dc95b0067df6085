// Activations and their gradients may be rounded at a boundary, and the job still converges.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "e2e/small_job.h"

namespace motley::test {
namespace {

struct LossyCase {
  const char* chain;
  double loss_off;  // relative, of the last step
};

class LossyBoundary : public testing::TestWithParam<LossyCase> {
 protected:
  // Trains 40 steps on two stages and returns the last step's loss.
  double loss_with(const std::string& run, const std::string& chain) const {
    auto words = SmallJob::measured_with({"compression.activations=" + chain});
    words.insert(words.end(), {"--stages", "2", "--set", "train.steps=40"});
    const Outcome outcome = job_.train(run, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto losses = metric_column(job_.run_dir(run), "loss");
    EXPECT_EQ(losses.size(), 40U);
    return losses.empty() ? NAN : std::stod(losses.back());
  }

  SmallJob job_;
};

TEST_P(LossyBoundary, LearnsNearlyAsWell) {
  const double exact = loss_with("exact", "none");
  const double lossy = loss_with("lossy", GetParam().chain);
  RecordProperty("exact", std::to_string(exact));
  RecordProperty("lossy", std::to_string(lossy));
  EXPECT_NE(lossy, exact);
  EXPECT_NEAR(lossy, exact, GetParam().loss_off * exact);
}

TEST(ChosenCodecs, AreAmongThoseMeasured) {
  const SmallJob job;
  const Outcome outcome = job.train(
      "chosen", {"--stages", "2", "--set", "train.steps=2", "--set", "train.warmup_steps=1",
                 "--set", "compression.activations=auto", "--set", "compression.gradients=auto"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Chains,
                         LossyBoundary,
                         testing::Values(LossyCase{"fp16", 0.01},
                                         LossyCase{"int8", 0.01},
                                         LossyCase{"int4", 0.03}),
                         [](const auto& lossy) { return lossy.param.chain; });

}  // namespace
}  // namespace motley::test

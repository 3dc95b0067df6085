// The same config gives the same bits under every plan: numbers of stages, schedules, cuts,
// activation checkpointing.
#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

struct Variant {
  const char* name;
  std::vector<std::string> settings;
};

class PlanIndependence : public testing::TestWithParam<Variant> {
 protected:
  std::vector<std::string> with_settings(std::vector<std::string> words) const {
    for (const std::string& setting : GetParam().settings) {
      words.insert(words.end(), {"--set", setting});
    }
    return words;
  }

  // Trains and compares with the first run: every loss as text, and all final parameters.
  void expect_same(const std::string& run, std::vector<std::string> words) {
    if (!losses_.empty()) std::ranges::copy(job_.as_measured_for("one"), std::back_inserter(words));
    const Outcome outcome = job_.train(run, with_settings(words));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto losses = metric_column(job_.run_dir(run), "loss");
    const auto norms = metric_column(job_.run_dir(run), "grad_norm");
    const std::string hash = job_.parameter_hash(run, 50);
    if (losses_.empty()) {
      losses_ = losses;
      norms_ = norms;
      hash_ = hash;
    }
    ASSERT_EQ(losses.size(), 50U);
    EXPECT_EQ(losses, losses_) << run;
    EXPECT_EQ(norms, norms_) << run;
    EXPECT_EQ(hash, hash_) << run;
  }

  SmallJob job_;
  std::vector<std::string> losses_;
  std::vector<std::string> norms_;
  std::string hash_;
};

TEST_P(PlanIndependence, HoldsForStagesSchedulesAndCuts) {
  expect_same("one", {"--stages", "1", "--set", "profile.seconds=2"});
  for (const char* stages : {"2", "3", "4"}) {
    for (const char* schedule : {"gpipe", "1f1b", "split"}) {
      expect_same(std::string(stages) + schedule,
                  {"--stages", stages, "--set", std::string("parallel.schedule=") + schedule});
    }
  }
  expect_same("cut-early", {"--set", "parallel.cuts=[1]"});
  expect_same("cut-late", {"--set", "parallel.cuts=[5]"});
  const auto recompute = [](Json& plan, std::size_t chunk) {
    plan["chunks"][chunk]["recompute"] = true;
  };
  const auto all = [&](Json& plan) {
    for (std::size_t chunk = 0; chunk < plan["chunks"].size(); ++chunk) recompute(plan, chunk);
  };
  expect_same("one-again", {"--plan", job_.changed_plan("one", all)});
  expect_same("three-again", {"--plan", job_.changed_plan("31f1b", all)});
  for (const std::size_t chunk : {0, 1, 2}) {
    expect_same(
        "again-" + std::to_string(chunk),
        {"--plan", job_.changed_plan("3gpipe", [&](Json& plan) { recompute(plan, chunk); })});
  }
  expect_same("three-split-again", {"--plan", job_.changed_plan("3split", all)});
  expect_same("three-split-late", {"--plan", job_.changed_plan("3split", [](Json& plan) {
                                     ASSERT_GE(plan["micro_batches"], 4);
                                     for (int c = 0; c < 3; ++c) {
                                       plan["chunks"][c]["in_flight"] = 4 - c;
                                       plan["chunks"][c]["queued_weights"] = 1 + c;
                                     }
                                   })});
  // The rank of the first chunk also has the last one, and every part has its own time.
  expect_same("three-folded", {"--plan", job_.changed_plan("3split", [](Json& plan) {
                                 plan["ranks"].erase(2);
                                 plan["chunks"][2]["replicas"][0]["rank"] = 0;
                                 for (int c = 0; c < 3; ++c) {
                                   Json& replica = plan["chunks"][c]["replicas"][0];
                                   replica["forward_us"] = 300 + 100 * c;
                                   replica["backward_input_us"] = 500 - 100 * c;
                                   replica["backward_weight_us"] = 200;
                                   plan["chunks"][c]["hop_us"] = 700;
                                   plan["chunks"][c]["in_flight"] = 4;
                                 }
                               })});
  expect_same("three-early", {"--plan", job_.changed_plan("31f1b", [](Json& plan) {
                                ASSERT_GE(plan["micro_batches"], 4);
                                for (int c = 0; c < 3; ++c) plan["chunks"][c]["in_flight"] = 4 - c;
                              })});
  EXPECT_NE(losses_.front(), losses_.back()) << "nothing was learned";
}

INSTANTIATE_TEST_SUITE_P(,
                         PlanIndependence,
                         testing::Values(Variant{"Tied", {}},
                                         Variant{"Untied", {"model.tied=false"}},
                                         Variant{"TiedDropout", {"model.dropout=0.1"}},
                                         Variant{"UntiedDropoutSgd",
                                                 {"model.tied=false", "model.dropout=0.1",
                                                  "train.optimizer=sgd"}},
                                         Variant{"Mlp", {"model.kind=mlp", "model.layers=5"}}),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace motley::test

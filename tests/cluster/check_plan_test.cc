// Checks of a given plan against the cluster.
#include "cluster/planning/check_plan.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::HasSubstr;

class CheckPlan : public testing::Test {
 protected:
  CheckPlan() {
    config_.model.kind = "gpt2";
    config_.model.layers = 1;
    config_.model.width = 32;
    config_.model.heads = 4;
    config_.train.global_batch = 4;
    model_ = describe_model(config_.model).value();
    plan_.model_hash = model_.hash();
    plan_.micro_batch = 1;
    plan_.micro_batches = 4;
    plan_.chunks = {{0, static_cast<int>(model_.layers.size()), {{Rank{0}, 4}}, "none"}};
  }

  // The error of the plan on `device`, of a machine that lists the devices `listed`.
  [[nodiscard]] std::optional<Error> wrong_with(const std::string& device,
                                                const std::vector<std::string>& listed) {
    plan_.ranks = {{"desk", device, 1, 0.5, 1000, 940}};
    Machine machine;
    machine.name = "desk";
    machine.devices = listed;
    Cluster cluster;
    cluster.machines = {machine};
    const auto checked = check_plan(plan_, model_, config_, cluster);
    return checked.ok() ? std::nullopt : std::optional(checked.error());
  }

  Config config_;
  ModelSpec model_;
  Plan plan_;
};

TEST_F(CheckPlan, RefusesBoundariesThatLeaveValuesOut) {
  plan_.chunks.front().codec = "topk(0.01)";
  const auto error = wrong_with("cpu", {"cpu"});
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kConfig);
  EXPECT_THAT(error->cause, HasSubstr("only all-reduces of gradients send later"));
}

// In a plan of an earlier version, also if the configuration selects another codec now.
TEST_F(CheckPlan, RefusesACodecThatWasRemoved) {
  plan_.gradient_codec = "lowrank(4)|fp16";
  for (const char* asked : {"none", "auto", "int8", "lowrank(4)|fp16"}) {
    config_.compression.gradients = asked;
    const auto error = wrong_with("cpu", {"cpu"});
    ASSERT_TRUE(error.has_value()) << asked;
    EXPECT_EQ(error->code, ErrorCode::kConfig);
    EXPECT_THAT(error->what,
                HasSubstr("gradient_codec of the plan: not a codec: 'lowrank(4)|fp16'"));
    EXPECT_THAT(error->cause, HasSubstr("was removed"));
    EXPECT_THAT(error->remedy, HasSubstr("use int8 or int4, or topk(DENSITY)"));
  }
}

TEST_F(CheckPlan, TakesDevicesThatTheClusterFileLists) {
  for (const char* device : {"cpu", "privateuseone:0", "cuda:3"}) {
    const auto wrong = wrong_with(device, {"cpu", "privateuseone:0", "cuda:3"});
    EXPECT_FALSE(wrong) << describe(*wrong);
  }
  EXPECT_FALSE(wrong_with("virtual", {"virtual"}));
}

TEST_F(CheckPlan, RefusesOthers) {
  const auto wrong = wrong_with("privateuseone:0", {"cpu", "cuda:0"});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->code, ErrorCode::kConfig);
  EXPECT_EQ(wrong->what, "the plan uses device privateuseone:0 of machine desk");
  EXPECT_EQ(wrong->cause, "in the cluster file its devices are cpu, cuda:0");
  EXPECT_THAT(wrong->remedy, HasSubstr("--cluster"));
}

TEST_F(CheckPlan, RefusesRealDevicesForVirtualOnes) {
  EXPECT_EQ(wrong_with("virtual", {"cpu"}).value().cause,
            "in the cluster file its devices are real");
  EXPECT_EQ(wrong_with("cpu", {"virtual"}).value().cause,
            "in the cluster file its devices are virtual");
}

}  // namespace
}  // namespace motley

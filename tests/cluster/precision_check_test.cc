#include "cluster/diagnose/precision_check.h"

#include <gmock/gmock.h>

#include "base/json.h"

namespace motley {
namespace {

using testing::HasSubstr;

Json says(const char* compute_dtype) {
  return {{"event", "precision"}, {"numbers", compute_dtype}};
}

TEST(PrecisionCheck, IsSilentWhereAllHaveTheNumbers) {
  PrecisionCheck check("bf16", {"desktop (cuda:0)", "laptop (cpu)"}, true);
  EXPECT_EQ(check.add(1, says("bf16")).value(), std::nullopt);
  EXPECT_EQ(check.add(0, says("bf16")).value(), std::nullopt);
}

TEST(PrecisionCheck, NamesOnceWhoComputesInFp32) {
  PrecisionCheck check("fp16", {"desktop (cuda:0)", "laptop (cpu)", "box (cpu)"}, true);
  EXPECT_EQ(check.add(1, says("fp32")).value(), std::nullopt);
  EXPECT_EQ(check.add(0, says("fp16")).value(), std::nullopt);
  EXPECT_EQ(check.add(2, says("fp32")).value(),
            "laptop (cpu), box (cpu): no fp16 there, so they compute in fp32");
}

TEST(PrecisionCheck, RefusesWhatNobodyHas) {
  for (const char* wanted : {"bf16", "fp16"}) {
    PrecisionCheck check(wanted, {"laptop (cpu)"}, true);
    const auto refused = check.add(0, says("fp32"));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
    EXPECT_THAT(refused.error().what, HasSubstr(wanted));
    EXPECT_THAT(refused.error().cause, HasSubstr("laptop (cpu)"));
    EXPECT_THAT(refused.error().remedy, HasSubstr("fp32"));
    EXPECT_TRUE(check.has_refused());
  }
}

TEST(PrecisionCheck, TellsWhatEachComputesIn) {
  PrecisionCheck check("fp16", {"desktop (cuda:0)", "laptop (cpu)"}, true);
  EXPECT_EQ(check.compute_dtype_of(0), "fp32");
  EXPECT_TRUE(check.add(0, says("fp16")).ok());
  EXPECT_TRUE(check.add(1, says("fp32")).ok());
  EXPECT_EQ(check.compute_dtype_of(0), "fp16");
  EXPECT_EQ(check.compute_dtype_of(1), "fp32");
  EXPECT_FALSE(check.has_refused());
}

TEST(NobodyComputesIn, NamesWhatIsThereInstead) {
  const Error error =
      unsupported_dtype("fp16", {{"vm (cpu)", {"fp32", "bf16"}}, {"box (cpu)", {"fp32"}}});
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.cause, HasSubstr("here are vm (cpu), which computes in fp32 and bf16, box "
                                     "(cpu), which computes in fp32"));
  EXPECT_EQ(error.remedy,
            "set train.precision = \"bf16\", which vm (cpu) has, or leave "
            "train.precision at \"fp32\"");
  EXPECT_EQ(unsupported_dtype("fp16", {{"box (cpu)", {"fp32"}}}).remedy,
            "leave train.precision at \"fp32\"");
}

// A plan on the processor alone; a device with fp16 is present but not used.
class PlanPrecision : public testing::Test {
 protected:
  PlanPrecision() {
    plan_.ranks = {{.machine = "desk", .device = "cpu"}};
    for (const char* device : {"cpu", "cuda:0"}) {
      DeviceProfile& profile = profile_.devices.emplace_back();
      profile.machine = "desk";
      profile.device = device;
      profile.precision = "fp16";
      profile.compute_dtype = profile.device == "cpu" ? "fp32" : "fp16";
    }
  }

  Plan plan_;
  Profile profile_;
};

TEST_F(PlanPrecision, IsRefusedWhereNoStageHasIt) {
  const auto refused = check_plan_precision("fp16", plan_, profile_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_THAT(refused.error().what, HasSubstr("no stage of the plan supports it"));
  EXPECT_THAT(refused.error().cause, HasSubstr("desk (cuda:0)"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("leave desk (cpu) out of the cluster file"));
  profile_.devices.pop_back();
  EXPECT_THAT(check_plan_precision("fp16", plan_, profile_).error().what,
              HasSubstr("no device supports it"));
}

TEST_F(PlanPrecision, IsThatOfThePlansFigures) {
  EXPECT_EQ(plan_of_other_precision("fp16", plan_), std::nullopt) << "it has none";
  plan_.predicted_step_s = 1;
  EXPECT_EQ(plan_of_other_precision("fp32", plan_), std::nullopt);
  EXPECT_THAT(plan_of_other_precision("fp16", plan_).value(),
              HasSubstr("made for train.precision = "
                        "\"fp32\""));
}

TEST_F(PlanPrecision, IsEnoughOnOneStage) {
  EXPECT_TRUE(check_plan_precision("fp32", plan_, profile_).ok());
  plan_.ranks.push_back({.machine = "desk", .device = "cuda:0", .compute_dtype = "fp16"});
  EXPECT_TRUE(check_plan_precision("fp16", plan_, profile_).ok());
}

// A plan may leave out the devices that have the dtype.
TEST(PrecisionCheck, OnlySaysSoOfAPartOfTheDevices) {
  PrecisionCheck check("bf16", {"laptop (cpu)"}, false);
  EXPECT_EQ(check.add(0, says("fp32")).value(),
            "laptop (cpu): no bf16 there, so it computes in fp32");
}

TEST(PrecisionCheck, RefusesAWorkerThatSaysNothing) {
  PrecisionCheck check("bf16", {"laptop (cpu)"}, true);
  EXPECT_FALSE(check.add(0, {{"event", "precision"}}).ok());
}

}  // namespace
}  // namespace motley

// Planning with hypothetical machines beside an existing one.
#include <gmock/gmock.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Imagined : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> with_cluster(std::vector<std::string> words) const {
    words.insert(words.end(), {"--cluster", cluster_});
    return words;
  }

  SmallJob job_;
  std::string config_ = job_.folder().write("job2.toml", kSmallJob);
  std::string cluster_ = job_.folder().write("dream.toml", R"(
[[machine]]
name = "here"
[[machine]]
name = "card"
device_model = "rtx-3060"
)");
};

TEST_F(Imagined, ArePlannedWithAndNamed) {
  const std::string plan_file = job_.run_dir("plan.json");
  const std::string profile = job_.run_dir("profile.json");
  const Outcome profiled = motley(with_cluster({"profile", config_, "--output", profile}));
  ASSERT_EQ(profiled.status, 0) << profiled.err;
  const Outcome plan = motley(with_cluster(
      {"plan", config_, "--profile", profile, "--stages", "2", "--output", plan_file}));
  ASSERT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("predicted (virtual)"));
  EXPECT_THAT(plan.out, HasSubstr("virtual   card (rtx-3060, 4200 Gflop/s)"));
  EXPECT_THAT(plan.out, Not(HasSubstr("computing is simulated by waiting")));
  const Outcome simulated =
      motley(with_cluster({"simulate", plan_file, "--config", config_, "--profile", profile}));
  EXPECT_EQ(simulated.status, 0) << simulated.err;
  const Outcome advice = motley(with_cluster({"plan", config_, "--profile", profile, "--advise"}));
  ASSERT_EQ(advice.status, 0) << advice.err;
  EXPECT_THAT(advice.out, HasSubstr("virtual: card (rtx-3060, 4200 Gflop/s)"));
}

TEST_F(Imagined, HaveTheRateOfThePrecision) {
  const std::string pair = job_.folder().write("pair.toml", R"(
[[machine]]
name = "card"
device_model = "rtx-3060"
[[machine]]
name = "old"
device_model = "titan-x-pascal"
)");
  const Outcome plan = motley(
      {"plan", config_, "--cluster", pair, "--set", "train.precision=bf16", "--stages", "2"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("virtual   card (rtx-3060, 10900 Gflop/s in bf16), old "
                                  "(titan-x-pascal, 5700 Gflop/s): computed"));
  EXPECT_THAT(plan.out, HasSubstr("bf16 on card/virtual; fp32 on old/virtual"));
  EXPECT_THAT(plan.out, HasSubstr("note      old: no bf16 there, so it is planned at the rate of "
                                  "fp32\n"));
}

TEST_F(Imagined, AreSaidToBeSoAmongDevices) {
  const Outcome listed = motley(with_cluster({"devices"}));
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("LibTorch"));
  EXPECT_THAT(listed.out, HasSubstr("virtual, not queried: card (rtx-3060, 4200 Gflop/s)"));
}

TEST_F(Imagined, AreNotRunBesideRealOnes) {
  const MotleyWithoutWorker program;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", config_, "--run", job_.run_dir("a")},
        {"launch", config_, "--run", job_.run_dir("b")},
        {"probe"},
        {"doctor"}}) {
    const Outcome refused = program.run(with_cluster(words));
    EXPECT_EQ(refused.status, 3) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("'here' has real devices and 'card' virtual ones"));
    EXPECT_THAT(refused.err, HasSubstr("only motley plan"));
  }
  EXPECT_FALSE(program.worker_was_started());
}

}  // namespace
}  // namespace motley::test

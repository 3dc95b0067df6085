// Simulated runs on virtual devices, as a user starts them.
#include <filesystem>

#include <gmock/gmock.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kTwoVirtual = R"(
[[machine]]
name = "fast"
shell = []
devices = ["virtual"]
memory_gib = 4
[machine.virtual]
tokens_per_s = 30000
[[machine]]
name = "slow"
shell = []
devices = ["virtual"]
memory_gib = 4
[machine.virtual]
tokens_per_s = 10000
)";

class Virtual : public testing::Test {
 protected:
  // A simulated run of a few steps on two stages. `every` requests checkpoints, which it must not
  // save.
  [[nodiscard]] Outcome simulate(const std::string& name,
                                 const std::vector<std::string>& extra = {}) const {
    std::vector<std::string> words{"--cluster", cluster_,
                                   "--set",     "train.steps=5",
                                   "--set",     "checkpoint.every=2",
                                   "--set",     "train.eval_every=2"};
    words.insert(words.end(), extra.begin(), extra.end());
    return job_.train(name, words);
  }

  [[nodiscard]] Json file_of(const std::string& run, const std::string& name) const {
    return parse_json(read_text(job_.folder() / run / name), name).value();
  }

  SmallJob job_;
  std::string cluster_ = job_.folder().write("cluster.toml", kTwoVirtual);
};

// A given speed is that of the run, in whatever precision.
TEST_F(Virtual, HaveTheNumbersOfThePrecision) {
  const Outcome run = simulate("rounded", {"--stages", "2", "--set", "train.precision=bf16"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("tokens/s in bf16): computed, not measured"));
  EXPECT_EQ(file_of("rounded", "plan.json")["ranks"][0]["numbers"], "bf16");
}

TEST_F(Virtual, PipelinesStepAndSaySo) {
  const Outcome run = simulate("run", {"--stages", "2"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("predicted (virtual)"));
  EXPECT_THAT(run.out, HasSubstr("step 5/5  virtual"));
  EXPECT_THAT(run.out, HasSubstr("virtual devices: computing is simulated by waiting"));
  EXPECT_THAT(run.err, HasSubstr("no checkpoint saved"));
  EXPECT_THAT(run.err, HasSubstr("not at the speeds that the cluster file gives"));
  EXPECT_THAT(metric_column(job_.run_dir("run"), "tokens"), Each("128"));
  EXPECT_THAT(metric_column(job_.run_dir("run"), "loss"), SizeIs(5));
  EXPECT_THAT(metric_column(job_.run_dir("run"), "loss"), Each("null"));
  EXPECT_THAT(metric_column(job_.run_dir("run"), "virtual"), Each("true"));
  const Json report = file_of("run", "report.json");
  EXPECT_EQ(report["last_step"], 5);
  for (const Json& rank : report["ranks"]) {
    EXPECT_EQ(rank["device"], "virtual");
    EXPECT_THAT(rank["name"].get<std::string>(), HasSubstr(", virtual)"));
  }
  const Outcome shown = motley({"report", job_.run_dir("run")});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("virtual devices"));
  EXPECT_THAT(shown.out, HasSubstr("not at the speeds that the cluster file gives"));
  EXPECT_THAT(shown.out, Not(HasSubstr("--learn")));
}

TEST_F(Virtual, ReplicasSumTheirGradients) {
  ASSERT_EQ(simulate("pipeline", {"--stages", "2"}).status, 0);
  const std::string plan = job_.changed_plan("pipeline", [](Json& json) {
    Json whole = json["chunks"].back();  // the last has no boundary after it
    whole["first_layer"] = 0;
    whole["layer_count"] = 6;
    whole["in_flight"] = 0;
    whole["queued_weights"] = 0;
    const Json some = whole["replicas"][0];
    whole["replicas"] = Json::array({some, some});
    for (int rank = 0; rank < 2; ++rank) {
      whole["replicas"][rank]["rank"] = rank;
      whole["replicas"][rank]["micro_batches"] = rank == 0 ? 3 : 1;
    }
    json["chunks"] = Json::array({whole});
    json["schedule"] = "1f1b";
  });
  const Outcome run = simulate("run", {"--plan", plan});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(metric_column(job_.run_dir("run"), "tokens"), Each("128"));
  const Json report = file_of("run", "report.json");
  EXPECT_EQ(report.at("ranks").size(), 2U);
  for (const Json& rank : report["ranks"]) {
    EXPECT_GT(rank["sent_bytes"]["measured"], 4 * 25'000);
    EXPECT_EQ(rank["sent_bytes"]["measured"], rank["sent_bytes"]["predicted"]);
  }
}

TEST_F(Virtual, RunsLeaveNothingToGoOnFrom) {
  ASSERT_EQ(simulate("run").status, 0);
  EXPECT_FALSE(std::filesystem::exists(job_.folder() / "run" / "checkpoints"));
  const Outcome resumed = simulate("run", {"--resume"});
  EXPECT_EQ(resumed.status, 2);
  EXPECT_THAT(resumed.err, HasSubstr("virtual devices cannot be resumed"));
  const Outcome generated = motley({"generate", job_.run_dir("run")});
  EXPECT_EQ(generated.status, 3);
  EXPECT_THAT(generated.err, HasSubstr("was on virtual devices"));
}

TEST_F(Virtual, PlansDoNotRunOnRealDevices) {
  ASSERT_EQ(simulate("run").status, 0);
  const std::string real = job_.folder().write(
      "real.toml", "[[machine]]\nname = \"fast\"\n[[machine]]\nname = \"slow\"\n");
  const Outcome run =
      job_.train("real", {"--cluster", real, "--plan", job_.run_dir("run") + "/plan.json"});
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.err, HasSubstr("its devices are real"));
}

TEST_F(Virtual, ProfilesAreComputedFromTheSpeed) {
  const std::string file = job_.run_dir("profile.json");
  const std::string config = job_.folder().write("job2.toml", kSmallJob);
  const Outcome profiled = motley({"profile", config, "--cluster", cluster_, "--output", file});
  ASSERT_EQ(profiled.status, 0) << profiled.err;
  // The launcher computes the second one, by the same rule as the worker of the first.
  EXPECT_THAT(profiled.err, HasSubstr("computed 2 virtual devices"));
  const Json devices = parse_json(read_text(file), file).value()["devices"];
  ASSERT_EQ(devices.size(), 2U);
  for (const auto& [signature, samples] : devices[0]["layers"].items()) {
    const double ratio = devices[1]["layers"][signature][0]["forward_s"].get<double>() /
                         samples[0]["forward_s"].get<double>();
    EXPECT_TRUE(std::abs(ratio - 3) < 1e-9 || std::abs(ratio - 1 / 3.0) < 1e-9) << signature;
  }
  EXPECT_EQ(devices[0]["memory_bytes"], std::int64_t{4} << 30);
}

}  // namespace
}  // namespace motley::test

// Ranks of one run on different processors, emulated by environment variables of the libraries:
// OpenBLAS, oneDNN and the C library use fewer instruction sets on one machine than on the other.
#include <cmath>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

// docs/numerics.md: another order of additions, and fused instead of separate roundings.
constexpr double kLoss = 1e-6;  // relative, over 50 steps

constexpr const char* kDifferent = "the machines' processors round differently: ";

constexpr const char* kOldProcessor =
    "OPENBLAS_CORETYPE=Nehalem DNNL_MAX_CPU_ISA=SSE41 ATEN_CPU_CAPABILITY=default "
    "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F";
constexpr const char* kNewProcessor = "MOTLEY_TEST_PROCESSOR=new";

class UnlikeProcessors : public testing::Test {
 protected:
  // The entry of a machine whose worker runs with these settings.
  [[nodiscard]] std::string machine(const std::string& name, const std::string& settings) const {
    const std::string folder = name + (settings == kOldProcessor ? "-old" : "-new");
    std::filesystem::create_directories(job_.folder() / folder);
    const std::string script =
        job_.folder().write(folder + "/motley-stage", "#!/bin/sh\nexec env " + settings + " '" +
                                                          stage_program().string() + "'\n");
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    return "[[machine]]\nname = \"" + name + "\"\nmotley_dir = \"" +
           (job_.folder() / folder).string() + "\"\n";
  }

  [[nodiscard]] std::string cluster(const char* left, const char* right) const {
    return job_.folder().write("cluster.toml", machine("left", left) + machine("right", right));
  }

  // The runs called "like" have equal processors.
  [[nodiscard]] std::vector<double> losses(const std::string& run,
                                           const std::string& plan,
                                           const std::string& cluster,
                                           const std::vector<std::string>& settings = {}) const {
    std::vector<std::string> words{"--plan", plan, "--cluster", cluster};
    for (const std::string& setting : settings) {
      words.insert(words.end(), {"--set", setting});
    }
    const Outcome outcome = job_.train(run, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find(kDifferent) != std::string::npos, run != "like") << outcome.err;
    std::vector<double> values;
    for (const std::string& loss : metric_column(job_.run_dir(run), "loss")) {
      values.push_back(std::stod(loss));
    }
    return values;
  }

  void SetUp() override {
    const Outcome outcome =
        job_.train("two", {"--stages", "2", "--cluster", cluster(kNewProcessor, kNewProcessor)});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }

  // One chunk on two ranks of these machines; `first_share` of five micro-batches on the first.
  [[nodiscard]] std::string replicas(const char* first, const char* second, int first_share) const {
    return job_.changed_plan("two", [&](Json& plan) {
      Json chunk = plan["chunks"][0];
      chunk["layer_count"] = 6;
      chunk["replicas"] = {{{"rank", 0}, {"micro_batches", first_share}},
                           {{"rank", 1}, {"micro_batches", 5 - first_share}}};
      plan["chunks"] = Json::array({chunk});
      plan["ranks"][0]["machine"] = first;
      plan["ranks"][1]["machine"] = second;
      plan["micro_batches"] = 5;
    });
  }

  static void expect_near(const std::vector<double>& losses, const std::vector<double>& expected) {
    ASSERT_EQ(losses.size(), 50U);
    ASSERT_EQ(expected.size(), 50U);
    EXPECT_LT(losses.back(), losses.front()) << "nothing was learned";
    for (std::size_t step = 0; step < losses.size(); ++step) {
      EXPECT_NEAR(losses[step] / expected[step], 1, kLoss) << step;
    }
  }

  SmallJob job_;
};

TEST_F(UnlikeProcessors, APipelineOverThemLearnsWhatLikeOnesLearn) {
  const std::string plan = job_.changed_plan("two", [](Json&) {});
  const auto like = losses("like", plan, cluster(kNewProcessor, kNewProcessor));
  const auto unlike = losses("unlike", plan, cluster(kOldProcessor, kNewProcessor));
  expect_near(unlike, like);
}

TEST_F(UnlikeProcessors, ReplicasOnThemLearnWhatLikeOnesLearn) {
  const std::vector<std::string> batch = {"train.global_batch=10"};
  const std::string plan = replicas("left", "right", 4);
  const auto like = losses("like", plan, cluster(kNewProcessor, kNewProcessor), batch);
  const auto unlike = losses("unlike", plan, cluster(kOldProcessor, kNewProcessor), batch);
  expect_near(unlike, like);
}

// A checkpoint contains the parameters of the first replica. So the same run is made twice, with
// either machine first. Each machine computes the same micro-batches, and both all-reduces have
// the same terms. Equal final parameters then show that the replicas were equal in each step.
// Nothing may depend on the first rank: no norm is clipped, and the learning rate is constant.
TEST_F(UnlikeProcessors, ReplicasOnThemEndWithTheSameBits) {
  const std::vector<std::string> settings = {"train.global_batch=10", "train.optimizer=sgd",
                                             "train.schedule=constant", "train.clip=0",
                                             "train.warmup_steps=0"};
  const std::string machines = cluster(kOldProcessor, kNewProcessor);
  const auto one = losses("one", replicas("left", "right", 4), machines, settings);
  const auto other = losses("other", replicas("right", "left", 1), machines, settings);
  EXPECT_LT(one.back(), one.front()) << "nothing was learned";
  EXPECT_EQ(job_.parameter_hash("one", 50), job_.parameter_hash("other", 50));
}

}  // namespace
}  // namespace motley::test

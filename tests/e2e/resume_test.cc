// An interrupted run continues exactly, also with another number of stages.
#include <gtest/gtest.h>

#include "e2e/small_job.h"

namespace motley::test {
namespace {

std::vector<std::string> forty_steps(const std::vector<std::string>& more) {
  std::vector<std::string> words = SmallJob::measured_with({"model.dropout=0.1"});
  words.insert(words.end(), {"--set", "train.steps=40"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Resume, FortyStepsEqualTwiceTwenty) {
  const SmallJob job;
  ASSERT_EQ(job.train("straight", forty_steps({"--stages", "2"})).status, 0);
  for (const char* stages : {"2", "3", "1"}) {
    const std::string run = std::string("resumed-on-") + stages;
    ASSERT_EQ(job.train(run, forty_steps({"--stages", "2", "--stop-after", "20"})).status, 0);
    const Outcome outcome = job.train(run, forty_steps({"--stages", stages, "--resume"}));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(metric_column(job.run_dir(run), "loss"),
              metric_column(job.run_dir("straight"), "loss"));
    EXPECT_EQ(metric_column(job.run_dir(run), "lr"), metric_column(job.run_dir("straight"), "lr"));
    EXPECT_EQ(job.parameter_hash(run, 40), job.parameter_hash("straight", 40));
  }
}

TEST(Resume, GoesOnFromACheckpointInOtherFiles) {
  const SmallJob job;
  ASSERT_EQ(job.train("straight", forty_steps({"--stages", "2"})).status, 0);
  ASSERT_EQ(job.train("run", forty_steps({"--stages", "2", "--stop-after", "20"})).status, 0);
  const std::filesystem::path saved = job.run_dir("run") + "/checkpoints/step-000020";
  const std::string cut = job.run_dir("step-000020");
  const Outcome made = motley({"ckpt", "reshard", job.run_dir("run"), "--files", "5", "-o", cut});
  ASSERT_EQ(made.status, 0) << made.err;
  std::filesystem::remove_all(saved);
  std::filesystem::rename(cut, saved);
  const Outcome outcome = job.train("run", forty_steps({"--stages", "2", "--resume"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(job.parameter_hash("run", 40), job.parameter_hash("straight", 40));
}

TEST(Resume, RefusesADamagedCheckpoint) {
  const SmallJob job;
  ASSERT_EQ(job.train("run", forty_steps({"--stop-after", "5"})).status, 0);
  const auto file = std::filesystem::path(job.run_dir("run")) /
                    "checkpoints/step-000005/model-00001-of-00001.safetensors";
  std::string bytes = read_text(file);
  bytes.back() ^= 1;
  job.folder().write("run/checkpoints/step-000005/model-00001-of-00001.safetensors", bytes);
  const Outcome outcome = job.train("run", forty_steps({"--resume"}));
  EXPECT_EQ(outcome.status, 7);
  EXPECT_NE(outcome.err.find("model-00001-of-00001.safetensors"), std::string::npos) << outcome.err;
}

TEST(Resume, NeverOverwritesARun) {
  const SmallJob job;
  ASSERT_EQ(job.train("run", forty_steps({"--stop-after", "2"})).status, 0);
  const std::string metrics =
      read_text(std::filesystem::path(job.run_dir("run")) / "metrics.jsonl");
  EXPECT_EQ(job.train("run", forty_steps({})).status, 3);
  EXPECT_EQ(read_text(std::filesystem::path(job.run_dir("run")) / "metrics.jsonl"), metrics);
}

}  // namespace
}  // namespace motley::test

// Each user's mistake gives the documented exit status and a message that names it and the remedy,
// and harms nothing.

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "e2e/small_disk.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

class BadInput : public testing::Test {
 protected:
  void expect_refused(const Outcome& outcome, int status, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    // A warning about a noisy machine may come first.
    EXPECT_NE(("\n" + outcome.err).find("\nmotley: error: "), std::string::npos) << outcome.err;
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in\n" << outcome.err;
    }
  }

  Outcome train_with(const std::string& setting) { return job_.train("run", {"--set", setting}); }

  SmallJob job_;
};

TEST_F(BadInput, UnknownCommand) {
  expect_refused(motley({"trian"}), 2, {"trian", "--help"});
}

TEST_F(BadInput, UnknownOption) {
  expect_refused(job_.train("run", {"--stages", "2", "--nope"}), 2, {"--nope"});
  // A prefix of an option's name is not accepted.
  expect_refused(job_.train("run", {"--stage", "2"}), 2, {"did you mean --stages?"});
}

TEST_F(BadInput, MissingConfig) {
  expect_refused(motley({"train", "/nonexistent.toml"}), 3, {"/nonexistent.toml"});
}

TEST_F(BadInput, UnknownKeyInTheFile) {
  const std::string config = job_.folder().write("bad.toml", "[train]\nwarmup_step = 3\n");
  expect_refused(motley({"train", config}), 3,
                 {"train.warmup_step", "bad.toml:2", "train.warmup_steps"});
}

TEST_F(BadInput, WrongType) {
  const std::string config = job_.folder().write("bad.toml", "[train]\nlr = \"fast\"\n");
  expect_refused(motley({"train", config}), 3, {"train.lr", "bad.toml:2", "number"});
}

TEST_F(BadInput, BadSyntax) {
  const std::string config = job_.folder().write("bad.toml", "[train\n");
  expect_refused(motley({"train", config}), 3, {"bad.toml:1"});
}

TEST_F(BadInput, UnreadableData) {
  const Outcome outcome =
      job_.train("run", {"--set", "data.kind=text", "--set", "data.path=/nonexistent/corpus.txt"});
  expect_refused(outcome, 8, {"/nonexistent/corpus.txt"});
}

TEST_F(BadInput, TooLittleData) {
  const std::string path = job_.folder().write("short.txt", "too short");
  expect_refused(job_.train("run", {"--set", "data.kind=text", "--set", "data.path=" + path}), 8,
                 {"short.txt"});
}

TEST_F(BadInput, VocabularySmallerThanTheTokens) {
  std::string tokens;
  for (int i = 0; i < 4096; ++i) tokens += std::string{static_cast<char>(i % 251), '\1'};
  const std::string path = job_.folder().write("tokens.bin", tokens);
  expect_refused(job_.train("run", {"--set", "data.kind=tokens", "--set", "data.path=" + path}), 8,
                 {"tokens.bin", "256", "model.vocab"});
}

TEST_F(BadInput, MoreStagesThanLayers) {
  expect_refused(job_.train("run", {"--stages", "7"}), 3, {"7", "6"});
}

TEST_F(BadInput, MicroBatchThatDoesNotDivide) {
  expect_refused(train_with("train.micro_batch=3"), 3, {"train.micro_batch", "train.global_batch"});
}

TEST_F(BadInput, UnknownCodec) {
  expect_refused(train_with("compression.activations=gzip"), 3, {"gzip", "fp16"});
}

TEST_F(BadInput, NothingToResume) {
  expect_refused(job_.train("run", {"--resume"}), 3, {"no checkpoint"});
}

TEST_F(BadInput, CheckpointOfAnotherModel) {
  ASSERT_EQ(job_.train("run", {"--stop-after", "2"}).status, 0);
  expect_refused(job_.train("run", {"--resume", "--set", "model.width=48"}), 3,
                 {"another model", "step-000002"});
}

TEST_F(BadInput, PlanOfAnotherModel) {
  ASSERT_EQ(job_.train("run", {"--stop-after", "2"}).status, 0);
  const std::string plan = job_.run_dir("run") + "/plan.json";
  expect_refused(job_.train("other", {"--plan", plan, "--set", "model.width=48"}), 3,
                 {"another model", "motley plan"});
}

TEST_F(BadInput, MissingPlan) {
  expect_refused(job_.train("run", {"--plan", "/nonexistent.json"}), 3, {"/nonexistent.json"});
}

TEST_F(BadInput, ADamagedPlan) {
  const std::string plan = job_.folder().write("plan.json", "{\"format\": ");
  expect_refused(job_.train("run", {"--plan", plan}), 7, {"plan.json"});
}

TEST_F(BadInput, APlanWithAMistake) {
  const std::string plan =
      job_.folder().write("plan.json", "{\"format\": \"motley.plan\",\n \"version\": \"two\"}");
  expect_refused(job_.train("run", {"--plan", plan}), 3,
                 {"'version'", "plan.json:2:13", "a whole number"});
}

TEST_F(BadInput, ADamagedProfile) {
  const std::string profile = job_.folder().write("profile.json", "{\"format\": 3 4}");
  expect_refused(job_.train("run", {"--profile", profile}), 7, {"profile.json:1:14"});
}

TEST_F(BadInput, AClusterWithAMistake) {
  const std::string cluster = job_.folder().write(
      "home.toml", "[network]\nbandwidth_mbps = -1\n[[machine]]\nname = \"a\"\n");
  expect_refused(job_.train("run", {"--cluster", cluster}), 3,
                 {"network.bandwidth_mbps", "home.toml:2:18", "it is -1"});
}

TEST_F(BadInput, AnEndlessFile) {
  expect_refused(job_.train("run", {"--cluster", "/dev/zero"}), 3, {"/dev/zero", "larger than"});
  expect_refused(job_.train("run", {"--profile", "/dev/zero"}), 7, {"/dev/zero", "larger than"});
}

TEST_F(BadInput, AModelOfAMillionLayers) {
  expect_refused(train_with("model.layers=1000000"), 3, {"model.layers", "10000"});
}

TEST_F(BadInput, APinOfAnUnknownMachine) {
  expect_refused(job_.train("run", {"--pin", "never locla"}), 3, {"locla", "did you mean 'local'"});
  expect_refused(train_with("parallel.pins=[\"layer h.0.atn on local\"]"), 3,
                 {"h.0.atn", "did you mean 'h.0.attn'"});
}

TEST_F(BadInput, AFullDiskLosesNothing) {
  const SmallDisk disk(job_.run_dir("run"), "700k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const Outcome first = job_.train("run", {"--stop-after", "2"});
  ASSERT_EQ(first.status, 0) << first.err;
  expect_refused(job_.train("run", {"--resume", "--stop-after", "4"}), 7, {"step-000004", "free"});
  const std::string checkpoint = job_.run_dir("run") + "/checkpoints/step-000002";
  EXPECT_EQ(motley({"ckpt", "verify", checkpoint}).status, 0);
}

TEST(Help, EveryCommandTeaches) {
  for (const char* command :
       {"train", "launch", "plan", "simulate", "profile", "generate", "config"}) {
    const Outcome outcome = motley({command, "--help"});
    EXPECT_EQ(outcome.status, 0) << command;
    EXPECT_NE(outcome.out.find("Usage: motley"), std::string::npos) << command;
  }
  EXPECT_EQ(motley({"--help"}).status, 0);
  EXPECT_EQ(motley({}).status, 2);
}

// Output to a closed standard stream must not go into a file that got its descriptor.
TEST(ClosedStreams, LeaveTheMetricsAlone) {
  const SmallJob job;
  std::string command = (stage_program().parent_path() / "motley").string();
  for (const std::string& word : job.train_words("run", {"--set", "train.steps=8"})) {
    command += " '" + word + "'";
  }
  ASSERT_EQ(std::system((command + " >&- 2>&- <&-").c_str()), 0);  // NOLINT(cert-env33-c)
  std::ifstream metrics(job.run_dir("run") + "/metrics.jsonl");
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) {
    EXPECT_EQ(line.substr(0, 1), "{") << line;
  }
  EXPECT_EQ(lines, 8);
}

}  // namespace
}  // namespace motley::test

// The steps of prepare_run() that start no process: each by its result.
#include "cluster/prepare/prepare_run.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "cluster/prepare/check_request.h"
#include "cluster/prepare/claim_folder.h"
#include "cluster/prepare/find_shards.h"
#include "cluster/prepare/run_start.h"
#include "cluster/run/checkpoint_committer.h"
#include "cluster/run/data_fingerprint.h"
#include "protocol/shard_message.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using testing::fault_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PrepareRun : public ::testing::Test {
 protected:
  PrepareRun() {
    Config& config = request_.planning.config;
    config.model = {.kind = "mlp", .layers = 1, .width = 8, .context = 2, .vocab = 4};
    config.data.kind = "synthetic";
    config.train.global_batch = 4;
    config.train.steps = 10;
    config.train.warmup_steps = 0;
    config.run.dir = (folder_.path() / "run").string();
    request_.planning.cluster.machines.push_back({.name = "desk"});
    request_.commands.resume = "motley train --resume";
  }

  [[nodiscard]] RunFolder run_folder() const { return RunFolder(request_.planning.config.run.dir); }

  [[nodiscard]] Result<CheckedRequest> check() const { return check_request(request_, log_); }

  [[nodiscard]] Result<ClaimedFolder> claim() {
    MOTLEY_ASSIGN(const CheckedRequest checked, check());
    return claim_folder(request_, checked, log_);
  }

  [[nodiscard]] Result<RunStart> start() const {
    MOTLEY_ASSIGN(const CheckedRequest checked, check());
    return start_of_run(request_, checked, {.resumes = checked.resumes}, log_);
  }

  // Leaves the files of a run of one rank that has saved this step.
  void save(std::int64_t step) const {
    const Config& config = request_.planning.config;
    ASSERT_OK(run_folder().make());
    ASSERT_OK(run_folder().write_config(config));
    const ModelSpec model = *describe_model(config.model);
    Plan plan;
    plan.micro_batch = 2;
    plan.ranks.resize(1);
    plan.chunks = {{.layer_count = 1, .replicas = {{Rank{0}, 2}}}};
    CheckpointCommitter committer(run_folder().dir(), testing::kLaunch, config, model, plan);
    EXPECT_TRUE(committer.set_data(data_fingerprint(check()->data->identity, config.data)).ok());
    const std::vector<float> values(4, 1.5F);
    const auto shard =
        write_shard({run_folder().dir(), testing::kLaunch, step}, 0, 1, {{"w", {4}, values}}, {});
    ASSERT_OK(shard);
    const auto saved = committer.add_shard(0, shard_event({{.step = step}, *shard}));
    ASSERT_OK(saved);
    ASSERT_TRUE(saved->has_value());
    ASSERT_TRUE((*saved)->folder.has_value());
  }

  testing::TempFolder folder_;
  TrainingRequest request_;
  std::vector<std::string> lines_;
  Log log_{"", LogLevel::kInfo, [this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(PrepareRun, ChecksTheDataIfAllMachinesAreThisOne) {
  const auto checked = check();
  ASSERT_OK(checked);
  EXPECT_FALSE(checked->resumes);
  EXPECT_TRUE(checked->data.has_value());
  EXPECT_THAT(checked->machines.names, ElementsAre("desk"));
  EXPECT_FALSE(checked->machines.may_be_distributed);
  request_.planning.config.data = {.kind = "text", .path = (folder_.path() / "none").string()};
  EXPECT_EQ(check().error().key, "data.path");
  request_.planning.cluster.machines.front().shell = {"ssh", "desk"};
  ASSERT_OK(check());
  EXPECT_FALSE(check()->data.has_value());
}

TEST_F(PrepareRun, RefusesToResumeSimulatedDevices) {
  Machine& machine = request_.planning.cluster.machines.front();
  machine.devices = {"virtual"};
  machine.virtual_speed = VirtualSpeed{};
  ASSERT_OK(check());
  EXPECT_THAT(lines_.front(), HasSubstr("no checkpoint saved"));
  request_.resume = ResumeRequest{};
  const auto refused = check();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
}

TEST_F(PrepareRun, ResumesOnlyFromACheckpoint) {
  request_.resume = ResumeRequest{};
  EXPECT_TRUE(check()->resumes) << "claim_folder() refuses a folder without a run";
  EXPECT_EQ(claim().error().code, ErrorCode::kConfig);
  EXPECT_FALSE(std::filesystem::exists(run_folder().dir())) << "none is created";
  ASSERT_OK(run_folder().make());
  ASSERT_OK(run_folder().write_config(request_.planning.config));
  EXPECT_FALSE(check()->resumes) << "the run ended before its first checkpoint";
  save(6);
  EXPECT_TRUE(check()->resumes);
}

TEST_F(PrepareRun, LocksTheFolderAndLogsThere) {
  {
    const auto claimed = claim();
    ASSERT_OK(claimed);
    ASSERT_NE(claimed->lock, nullptr);
    log_.info("a line");
    EXPECT_THAT(testing::read_bytes(run_folder().log_dir() / "motley.log"), HasSubstr("a line"));
    EXPECT_EQ(claim().error().code, ErrorCode::kPeer);
  }
  EXPECT_EQ(fault_of(claim()), "") << "the lock was released";
}

TEST_F(PrepareRun, ChangesNoFolderInADryRun) {
  request_.dry_run = true;
  const auto claimed = claim();
  ASSERT_OK(claimed);
  EXPECT_EQ(claimed->lock, nullptr);
  EXPECT_FALSE(std::filesystem::exists(run_folder().dir()));
}

TEST_F(PrepareRun, SuggestsToResumeARunInsteadOfOverwritingIt) {
  save(6);
  const auto refused = claim();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_THAT(refused.error().remedy, HasSubstr("motley train --resume"));
  request_.planning.config.train.steps = 6;
  EXPECT_THAT(claim().error().remedy, Not(HasSubstr("motley train --resume"))) << "it is complete";
}

TEST_F(PrepareRun, StartsANewRunWithStepOne) {
  const auto started = start();
  ASSERT_OK(started);
  EXPECT_EQ(started->steps.first, 1);
  EXPECT_EQ(started->steps.last, 10);
  EXPECT_FALSE(started->resumed.has_value());
  EXPECT_FALSE(started->saved.has_value());
  request_.stop_after = 4;
  EXPECT_EQ(start()->steps.last, 4);
  request_.stop_after = 40;
  EXPECT_EQ(start()->steps.last, 10);
}

TEST_F(PrepareRun, StartsAfterTheCheckpointWithTheRunsOwnChoices) {
  save(6);
  request_.resume = ResumeRequest{};
  const auto started = start();
  ASSERT_OK(started);
  EXPECT_EQ(started->steps.first, 7);
  EXPECT_EQ(started->steps.last, 10);
  ASSERT_TRUE(started->resumed.has_value());
  EXPECT_EQ(started->resumed->info.step, 6);
  EXPECT_EQ(started->config.train.micro_batch, 2) << "that of its plan";
  EXPECT_EQ(started->planning.options.micro_batch, 2);
  ASSERT_TRUE(started->saved.has_value());
  EXPECT_EQ(started->saved->fingerprint.micro_batch, 2);
  request_.stop_after = 5;
  EXPECT_EQ(start().error().code, ErrorCode::kUsage);
}

TEST_F(PrepareRun, RefusesChangesOfAResumedRunUnlessTheyAreAllowed) {
  save(6);
  request_.planning.config.train.lr *= 2;
  request_.resume = ResumeRequest{};
  const auto refused = start();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_THAT(refused.error().what, HasSubstr("train.lr"));
  EXPECT_THAT(lines_, IsEmpty());
  request_.resume->allow_changes = true;
  const auto allowed = start();
  ASSERT_OK(allowed);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("the run continues with train.lr")));
  EXPECT_FALSE(allowed->resumed->data.has_value()) << "other data is allowed too";
}

TEST_F(PrepareRun, RefusesOtherDataOfAResumedRun) {
  save(6);
  request_.resume = ResumeRequest{};
  CheckedRequest checked = *check();
  const std::string hash = checked.data->identity.hash;
  checked.data->identity.hash = std::string(32, 'b');
  const FoundShards found{.resumes = true};
  EXPECT_EQ(start_of_run(request_, checked, found, log_).error().code, ErrorCode::kData);
  checked.data.reset();  // read elsewhere
  const auto started = start_of_run(request_, checked, found, log_);
  ASSERT_OK(started);
  EXPECT_EQ(started->resumed->data->hash, hash);
}

}  // namespace
}  // namespace motley

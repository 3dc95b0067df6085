#include "cluster/run/checkpoint_committer.h"

#include <unistd.h>

#include <cstdlib>

#include <gmock/gmock.h>

#include "base/system/files.h"
#include "protocol/shard_message.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr const char* kLaunch = "000003-0123456789abcdef";
constexpr int kRanks = 3;

Config small_config() {
  Config config;
  config.model = {.kind = "mlp", .layers = 1, .width = 8, .context = 2, .vocab = 4};
  config.checkpoint.keep = 1;
  return config;
}

Plan plan_of_three() {
  Plan plan;
  plan.micro_batch = 2;
  plan.ranks.resize(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    plan.chunks.push_back({.first_layer = rank, .layer_count = 1, .replicas = {{Rank{rank}, 1}}});
  }
  return plan;
}

class CommitterTest : public testing::Test {
 protected:
  CommitterTest()
      : config_(small_config()),
        dir_(made_folder()),
        committer_(dir_, kLaunch, config_, *describe_model(config_.model), plan_of_three()) {}

  ~CommitterTest() override { std::filesystem::remove_all(dir_); }

  static std::string made_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "motley-commit-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }

  Result<std::optional<SaveOutcome>> save(std::int64_t step, int rank) {
    const std::vector<float> values(4, 1.5F);
    const auto shard = write_shard({dir_, kLaunch, step}, rank, kRanks,
                                   {{"w" + std::to_string(rank), {4}, values}}, {});
    EXPECT_TRUE(shard.ok());
    return committer_.add_shard(rank, shard_event({{.step = step}, *shard}));
  }

  Result<std::optional<SaveOutcome>> fail(std::int64_t step, int rank) {
    return committer_.add_failure(
        rank, shard_failed_event({step, file_error("write", dir_ / "a shard", ENOSPC)}));
  }

  [[nodiscard]] bool partial_exists(std::int64_t step) const {
    return std::filesystem::exists(partial_folder({dir_, kLaunch, step}));
  }

  Config config_;
  std::filesystem::path dir_;
  CheckpointCommitter committer_;
};

TEST_F(CommitterTest, RetainsTheBestBesideTheNewest) {
  config_.train.eval_every = 10;
  config_.checkpoint.keep_best = true;
  CheckpointCommitter committer(dir_, kLaunch, config_, *describe_model(config_.model),
                                plan_of_three());
  const auto save_best = [&](std::int64_t step, const BestEvaluation& best) {
    const std::vector<float> values(4, 1.5F);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto shard = write_shard({dir_, kLaunch, step}, rank, kRanks,
                                     {{"w" + std::to_string(rank), {4}, values}}, {});
      ASSERT_TRUE(shard.ok());
      const CheckpointState state{.step = step,
                                  .evaluations = EvaluationRecord{best, best.loss, 0}};
      ASSERT_TRUE(committer.add_shard(rank, shard_event({state, *shard})).ok());
    }
  };
  const auto steps = [&] {
    std::vector<std::int64_t> found;
    for (const CheckpointInfo& info : list_checkpoints(dir_)) found.push_back(info.step);
    return found;
  };
  save_best(10, {10, 3});
  save_best(20, {20, 2});
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{20}));
  save_best(30, {20, 2});
  save_best(40, {20, 2});
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{20, 40}));
  EXPECT_EQ(retained_with(40, list_checkpoints(dir_), config_), (std::set<std::int64_t>{20, 40}));
  config_.checkpoint.keep_best = false;
  EXPECT_EQ(retained_with(40, list_checkpoints(dir_), config_), (std::set<std::int64_t>{40}));
}

TEST_F(CommitterTest, CommitsWhenAllRanksHaveSaved) {
  EXPECT_FALSE(save(10, 2)->has_value());
  EXPECT_FALSE(save(10, 0)->has_value());
  const auto outcome = save(10, 1);
  ASSERT_TRUE(outcome.ok() && outcome->has_value());
  EXPECT_EQ((*outcome)->folder, checkpoint_folder(dir_, 10));
  const auto manifest = read_manifest(*(*outcome)->folder);
  ASSERT_TRUE(manifest.ok());
  ASSERT_TRUE(manifest->state.plan.has_value());
  EXPECT_EQ(manifest->state.plan->micro_batch, 2);
}

TEST_F(CommitterTest, RecordsTheTokensOfARound) {
  const std::vector<double> tokens = {4096, 0.5};
  const auto save_with = [&](std::int64_t step, int rank, const std::vector<double>& counted) {
    const std::vector<float> values(4, 1.5F);
    const auto shard = write_shard({dir_, kLaunch, step}, rank, kRanks,
                                   {{"w" + std::to_string(rank), {4}, values}}, {});
    const CheckpointState state{.step = step, .round_tokens = counted};
    return committer_.add_shard(rank, shard_event({state, *shard}));
  };
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(save_with(10, rank, tokens).ok());
  const auto manifest = read_manifest(checkpoint_folder(dir_, 10));
  ASSERT_TRUE(manifest.ok()) << describe(manifest.error());
  EXPECT_EQ(manifest->state.round_tokens, tokens);
  ASSERT_TRUE(save_with(20, 0, tokens).ok());
  EXPECT_FALSE(save_with(20, 1, {4096, 1}).ok());
}

TEST_F(CommitterTest, TakesAwayWhatTheOthersWroteWhereOneRankHasNoRoom) {
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(save(10, rank).ok());
  EXPECT_FALSE(save(20, 0)->has_value());
  EXPECT_FALSE(fail(20, 1)->has_value());  // rank 2 may still be writing
  EXPECT_TRUE(partial_exists(20));
  const auto outcome = save(20, 2);
  ASSERT_TRUE(outcome.ok() && outcome->has_value());
  EXPECT_FALSE((*outcome)->folder.has_value());
  EXPECT_EQ((*outcome)->failed_rank, 1);
  EXPECT_THAT((*outcome)->failure->cause, HasSubstr("No space left on device"));
  EXPECT_FALSE(partial_exists(20));
  ASSERT_EQ(list_checkpoints(dir_).size(), 1U);

  // Once there is space again, the next save succeeds.
  ASSERT_TRUE(save(30, 0).ok() && save(30, 1).ok());
  EXPECT_EQ((*save(30, 2))->folder, checkpoint_folder(dir_, 30));
}

TEST_F(CommitterTest, SurvivesACommitThatFails) {
  ASSERT_TRUE(save(10, 0).ok() && save(10, 1).ok());
  const std::vector<float> values(4, 1.5F);
  const auto shard = write_shard({dir_, kLaunch, 10}, 2, kRanks, {{"w2", {4}, values}}, {});
  ASSERT_TRUE(shard.ok());
  // The disk lost data that it had accepted.
  std::filesystem::resize_file(partial_folder({dir_, kLaunch, 10}) / shard->model.name, 10);
  const auto outcome = committer_.add_shard(2, shard_event({{.step = 10}, *shard}));
  ASSERT_TRUE(outcome.ok() && outcome->has_value());
  EXPECT_TRUE((*outcome)->failure.has_value());
  EXPECT_FALSE(partial_exists(10));
  EXPECT_TRUE(list_checkpoints(dir_).empty());
}

TEST_F(CommitterTest, OneThatStandsInForAnotherGoesOnceThatHasItsCopies) {
  ASSERT_TRUE(committer_.prune().ok()) << "nothing is there yet";
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(save(10, rank).ok());
  committer_.retain_always({10});
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(save(20, rank).ok());
  EXPECT_EQ(list_checkpoints(dir_).size(), 2U);
  ASSERT_TRUE(save(30, 0).ok());
  committer_.retain_always({20});
  ASSERT_TRUE(committer_.prune().ok());
  ASSERT_EQ(list_checkpoints(dir_).size(), 1U);
  EXPECT_EQ(list_checkpoints(dir_).front().step, 20);
  EXPECT_TRUE(partial_exists(30)) << "a save under way is left alone";
}

TEST_F(CommitterTest, EndsTheRunWhereRanksDisagree) {
  ASSERT_TRUE(save(10, 0).ok());
  const std::vector<float> values(4, 1.5F);
  const auto shard = write_shard({dir_, kLaunch, 10}, 1, kRanks, {{"w1", {4}, values}}, {});
  ASSERT_TRUE(shard.ok());
  const auto outcome = committer_.add_shard(1, shard_event({{.step = 10, .samples = 8}, *shard}));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace motley

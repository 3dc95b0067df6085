#include "training/stage_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "tests/checkpoint/fixture.h"
#include "tests/training/held_values.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Floats = std::vector<float>;

std::unique_ptr<const Optimizer> adamw() {
  return make_optimizer(TrainConfig{});
}

StageState state_of(const HeldValues& held, const std::string& tied = "") {
  return {held.chunks(), make_optimizer(plain_sgd()), tied};
}

std::vector<std::string> names(const std::vector<TensorView>& views) {
  std::vector<std::string> all;
  for (const TensorView& view : views) all.push_back(view.name);
  return all;
}

// A checkpoint in `folder` with these tensors.
Result<CheckpointReader> saved_in(const testing::TempFolder& folder,
                                  const std::vector<TensorView>& parameters,
                                  const std::vector<TensorView>& moments) {
  MOTLEY_ASSIGN(const Shard shard, write_shard({folder.path(), "", 1}, 0, 1, parameters, moments));
  MOTLEY_ASSIGN(const auto committed,
                commit_checkpoint(folder.path(), "", {.step = 1}, {shard}, Json(), Json()));
  return CheckpointReader::open(committed);
}

// A tied parameter with its owner in layer 0 and its use in layer 2, each if it is on this rank.
struct Tied {
  HeldValues held;

  explicit Tied(bool owner_here, bool make_current) {
    if (owner_here) held.add(ChunkId{0}, 0, "wte");
    if (make_current) held.add(ChunkId{1}, 2, "wte").spec.tied_use = true;
  }
};

TEST(StageState, UpdatesEachParameterByItsGradient) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "a");
  held.add(ChunkId{0}, 1, "b");
  StageState state = state_of(held);
  held.gradients(0) = {2, 0, 0};
  held.gradients(1) = {0, 0, 4};
  state.update({.lr = 0.5}, {.clipped = 0.5F});
  EXPECT_EQ(held.values(0), (Floats{0.5F, -2, 3}));
  EXPECT_EQ(held.values(1), (Floats{1, -2, 2}));
  state.clear_gradients();
  EXPECT_EQ(held.gradients(1), (Floats{0, 0, 0}));
}

TEST(StageState, MovesAStatisticToTheMeanOfWhatTheMicroBatchesObserved) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "weight");
  held.add(ChunkId{0}, 0, "running_mean").spec.statistic_momentum = 0.25;
  StageState state(held.chunks(), adamw(), "", /*micro_batches=*/4);
  held.gradients(1) = {8, 0, 16};  // sums over four micro-batches
  const Floats before = held.values(1);
  EXPECT_EQ(state.layer_norms().front().squared_norm, 0);  // it has no gradient
  state.update({.lr = 0.5}, {.clipped = 0.5F});
  EXPECT_EQ(held.values(1),
            (Floats{0.75F * before[0] + 0.5F, 0.75F * before[1], 0.75F * before[2] + 1}));
  EXPECT_THAT(names(state.parameter_views()), ElementsAre("weight", "running_mean"));
  EXPECT_THAT(names(state.moment_views()), ElementsAre("exp_avg/weight", "exp_avg_sq/weight"));
}

TEST(StageState, LendsTheGradientsOfAChunk) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "a");
  held.add(ChunkId{2}, 4, "b");
  StageState state = state_of(held);
  EXPECT_EQ(state.gradients(ChunkId{2}).data(), held.gradients(1).data());
  EXPECT_DEATH((void)state.gradients(ChunkId{1}), "chunk 1 is on another rank");
}

TEST(StageState, SumsTheUsesOfATiedParameterThatAreHere) {
  Tied both(true, true);
  StageState state = state_of(both.held, "wte");
  both.held.gradients(0) = {1, 2, 3};
  both.held.gradients(1) = {10, 20, 30};
  state.end_tied_gradient();
  EXPECT_EQ(both.held.gradients(0), (Floats{11, 22, 33}));
  EXPECT_EQ(state.tied_gradient().data(), both.held.gradients(0).data());
}

TEST(StageState, GivesTheUseTheValuesOfItsOwner) {
  Tied both(true, true);
  StageState state = state_of(both.held, "wte");
  both.held.gradients(0) = {2, 2, 2};
  both.held.gradients(1) = {100, 100, 100};  // counts only in the sum of both
  state.update({.lr = 0.5}, {});
  EXPECT_EQ(both.held.values(0), (Floats{0, -3, 2}));
  EXPECT_EQ(both.held.values(1), both.held.values(0));
}

TEST(StageState, UpdatesAUseWithoutItsOwnerByItself) {
  Tied use(false, true);
  StageState state = state_of(use.held, "wte");
  use.held.gradients(0) = {2, 2, 2};
  EXPECT_EQ(state.tied_gradient().data(), use.held.gradients(0).data());
  state.update({.lr = 0.5}, {});
  EXPECT_EQ(use.held.values(0), (Floats{0, -3, 2}));
  EXPECT_THAT(names(state.parameter_views()), IsEmpty());
}

TEST(StageState, VotesForFirstCopiesAndForATiedParameterOnce) {
  Tied both(true, true);
  both.held.add(ChunkId{1}, 2, "ln_f");
  both.held.add(ChunkId{2}, 3, "copy").is_first = false;
  StageState state = state_of(both.held, "wte");
  for (std::size_t i = 0; i < 4; ++i) both.held.gradients(i) = {1, 2, 0};
  const auto norms = state.layer_norms();
  ASSERT_EQ(norms.size(), 2U);
  EXPECT_EQ(norms[0].layer, 0);
  EXPECT_EQ(norms[0].squared_norm, 5);
  EXPECT_EQ(norms[1].layer, 2);
  EXPECT_EQ(norms[1].squared_norm, 5);  // only of ln_f
}

TEST(StageState, SavesWhatItOwnsOfFirstCopies) {
  Tied both(true, true);
  HeldParameter& copy = both.held.add(ChunkId{2}, 3, "copy");
  copy.is_first = false;
  copy.member = 3;
  StageState state(both.held.chunks(), adamw(), "wte");
  EXPECT_THAT(names(state.parameter_views()), ElementsAre("wte"));
  EXPECT_THAT(names(state.moment_views()), ElementsAre("exp_avg/wte", "exp_avg_sq/wte"));
  EXPECT_THAT(names(state.residual_views()), ElementsAre("residual.0/wte", "residual.3/copy"));
}

// One rank saves; two ranks load, each its own chunk, by name.
TEST(StageState, LoadsWhatAnotherPlanHasSaved) {
  HeldValues whole;
  whole.add(ChunkId{0}, 0, "a");
  whole.add(ChunkId{0}, 1, "b");
  StageState saved(whole.chunks(), adamw(), "");
  whole.gradients(0) = {1, 2, 3};
  whole.gradients(1) = {-1, 0, 5};
  saved.update({0.1, {0.1, 0.001}}, {});
  // The residual of the all-reduces is stored in the gradients' memory.
  whole.gradients(1) = {7, 0, 0};
  auto moments = saved.moment_views();
  for (const TensorView& view : saved.residual_views()) moments.push_back(view);
  const testing::TempFolder folder;
  const auto reader = saved_in(folder, saved.parameter_views(), moments);
  ASSERT_TRUE(reader.ok()) << describe(reader.error());

  HeldValues part;
  part.add(ChunkId{1}, 1, "b");
  StageState loaded(part.chunks(), adamw(), "");
  ASSERT_TRUE(loaded.load_values(*reader).ok());
  ASSERT_TRUE(loaded.load_moments(*reader).ok());
  ASSERT_TRUE(loaded.load_residuals(*reader).ok());
  EXPECT_EQ(part.values(0), whole.values(1));
  EXPECT_EQ(part.gradients(0), (Floats{7, 0, 0}));
  const auto before = saved.moment_views();
  const auto after = loaded.moment_views();
  for (std::size_t moment = 0; moment < 2; ++moment) {
    const auto expected = before[2 + moment].values;
    const auto found = after[moment].values;
    EXPECT_TRUE(std::ranges::equal(expected, found)) << after[moment].name;
  }
}

// Only first copies of owners have an average; it begins as the initial values.
TEST(StageState, AveragesWhatItSaves) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "a");
  held.add(ChunkId{1}, 1, "b").is_first = false;
  StageState state(held.chunks(), host_memory(held.chunks(), make_optimizer(plain_sgd())), "",
                   /*micro_batches=*/1, /*ema=*/0.75);
  ProgressCounter work;
  ASSERT_TRUE(state.initialize(1, work).ok());
  ASSERT_THAT(names(state.moment_views()), ElementsAre("momentum/a", "ema/a"));
  const auto average = [&] {
    const auto view = state.moment_views()[1].values;
    return Floats(view.begin(), view.end());
  };
  EXPECT_EQ(average(), held.values(0));
  const float initial = held.values(0)[0];
  held.gradients(0) = {4, 0, 0};
  state.update({.lr = 1}, {});
  EXPECT_EQ(held.values(0)[0], initial - 4);
  EXPECT_EQ(average()[0], initial * 0.75F + 0.25F * (initial - 4));
  EXPECT_EQ(state.saved_bytes(), (3 * 3 + 3 * 2) * sizeof(float));
}

TEST(StageState, ResumesAverages) {
  const auto state_with = [](const HeldValues& held, double ema) {
    return StageState(held.chunks(), host_memory(held.chunks(), make_optimizer(plain_sgd())), "",
                      /*micro_batches=*/1, ema);
  };
  for (const double saved_with : {0.5, 0.0}) {
    HeldValues whole;
    whole.add(ChunkId{0}, 0, "a");
    StageState saved = state_with(whole, saved_with);
    whole.gradients(0) = {4, 8, 0};
    saved.update({.lr = 1}, {});
    const testing::TempFolder folder;
    const auto reader = saved_in(folder, saved.parameter_views(), saved.moment_views());
    ASSERT_TRUE(reader.ok()) << describe(reader.error());
    HeldValues again;
    again.add(ChunkId{0}, 0, "a");
    StageState loaded = state_with(again, 0.5);
    ASSERT_TRUE(loaded.load_values(*reader).ok());
    ASSERT_TRUE(loaded.load_moments(*reader).ok());
    const auto view = loaded.moment_views()[1].values;
    const Floats average(view.begin(), view.end());
    if (saved_with == 0) {
      EXPECT_EQ(average, again.values(0));  // begins with the checkpoint's weights
      continue;
    }
    const auto expected = saved.moment_views()[1].values;
    EXPECT_EQ(average, Floats(expected.begin(), expected.end()));
    EXPECT_NE(average, again.values(0));
  }
}

// Matrices of Muon have one moment, all others AdamW's two.
TEST(StageState, SavesTheMomentsOfEachParametersUpdate) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "a").rule.matrix = MatrixShape{1, 3};
  held.add(ChunkId{0}, 0, "b");
  TrainConfig train;
  train.optimizer = "muon";
  StageState state(held.chunks(), make_optimizer(train), "");
  EXPECT_THAT(names(state.moment_views()), ElementsAre("momentum/a", "exp_avg/b", "exp_avg_sq/b"));
  EXPECT_EQ(state.saved_bytes(), (3 * 2 + 3 * 3) * sizeof(float));
}

TEST(StageState, UpdatesByTheFactorsOfGroups) {
  HeldValues held;
  held.add(ChunkId{0}, 0, "a").rule.lr_factor = 0.5;
  held.add(ChunkId{0}, 1, "b").rule.decay_factor = 0.5;
  held.add(ChunkId{0}, 2, "c").spec.decayed = true;
  TrainConfig train = plain_sgd();
  train.weight_decay = 1;
  StageState state(held.chunks(), make_optimizer(train), "");
  for (std::size_t p = 0; p < 3; ++p) held.gradients(p) = {2, 0, 0};
  state.update({.lr = 0.5}, {});
  EXPECT_EQ(held.values(0), (Floats{0.5F, -2, 3}));
  EXPECT_EQ(held.values(1), (Floats{1 - 0.5F * 2.5F, -1.5F, 2.25F}));
  EXPECT_EQ(held.values(2), (Floats{1 - 0.5F * 3, -1, 1.5F}));
}

TEST(StageState, MissesWhatACheckpointLacks) {
  const testing::TempFolder folder;
  const auto reader = saved_in(folder, {}, {});
  ASSERT_TRUE(reader.ok()) << describe(reader.error());
  HeldValues held;
  held.add(ChunkId{0}, 0, "a");
  StageState state = state_of(held);
  for (const auto& loaded : {state.load_values(*reader), state.load_moments(*reader)}) {
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::kCorrupt);
  }
}

// Non-finite weights come from a run that diverged elsewhere.
TEST(StageState, RefusesWeightsThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF}) {
    HeldValues damaged;
    damaged.add(ChunkId{0}, 0, "fine");
    damaged.add(ChunkId{0}, 0, "bad");
    damaged.values(1)[2] = bad;
    const testing::TempFolder folder;
    StageState saved = state_of(damaged);
    const auto file = folder.path() / "model.safetensors";
    const auto written = write_safetensors(file, saved.parameter_views(), {{"format", "pt"}});
    ASSERT_TRUE(written.ok()) << describe(written.error());
    const auto reader = CheckpointReader::open(file);
    ASSERT_TRUE(reader.ok()) << describe(reader.error());
    const auto loaded = state_of(damaged).load_values(*reader);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::kData);
    EXPECT_THAT(loaded.error().what, ::testing::HasSubstr("tensor bad"));
    EXPECT_THAT(loaded.error().cause, ::testing::HasSubstr("1 of its 3 values"));
  }
}

TEST(StageState, StartsFromSeedAndName) {
  HeldValues one;
  HeldValues other;
  for (HeldValues* held : {&one, &other}) {
    HeldParameter& parameter = held->add(ChunkId{0}, 0, "h.0.attn.c_attn.weight");
    parameter.spec.init = {InitRule::Kind::kNormal, 0.02};
  }
  ProgressCounter work;
  ASSERT_TRUE(state_of(one).initialize(5, work).ok());
  ASSERT_TRUE(state_of(other).initialize(5, work).ok());
  EXPECT_EQ(one.values(0), other.values(0));
  ASSERT_TRUE(state_of(other).initialize(6, work).ok());
  EXPECT_NE(one.values(0), other.values(0));
}

void flip_a_bit(float& value) {
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U);
}

TEST(StageState, HashesEveryBitOfItsCopyOfAChunk) {
  HeldValues held;
  for (const char* name : {"a", "b"}) held.add(ChunkId{0}, 0, name);
  held.add(ChunkId{1}, 1, "c");
  StageState state = state_of(held);
  const CopyGroup group{ChunkId{0}, {}};
  const std::uint64_t hash = state.copy_hash(group);
  flip_a_bit(held.values(2)[0]);  // in another chunk
  EXPECT_EQ(state.copy_hash(group), hash);
  for (const std::size_t parameter : {0U, 1U}) {
    for (float& value : held.values(parameter)) {
      flip_a_bit(value);
      EXPECT_NE(state.copy_hash(group), hash);
      flip_a_bit(value);
    }
  }
  EXPECT_EQ(state.copy_hash(group), hash);
}

TEST(StageState, HashesATiedParameterAlikeWhereverItIsHeld) {
  Tied both(true, true);
  Tied owner(true, false);
  Tied use(false, true);
  const CopyGroup tied{{}, {}};
  const std::uint64_t hash = state_of(both.held, "wte").copy_hash(tied);
  EXPECT_EQ(state_of(owner.held, "wte").copy_hash(tied), hash);
  EXPECT_EQ(state_of(use.held, "wte").copy_hash(tied), hash);
  flip_a_bit(use.held.values(0)[1]);
  EXPECT_NE(state_of(use.held, "wte").copy_hash(tied), hash);
}

}  // namespace
}  // namespace motley

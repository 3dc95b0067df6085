// Deep Gradient Compression (Lin et al., 2018) in this project's ranks, compared with a
// straightforward implementation on one thread. Each replica clips its gradient, adds it to its
// velocity, and adds the velocity to its residual. It sends the largest values, and clears their
// velocity and residual. The parameters move by the sum of what both sent; the optimizer applies
// momentum only to weight decay.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <c10/core/InferenceMode.h>

#include "models/kernels/torch_threads.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/copy_groups.h"
#include "pipeline/schedule/schedules.h"
#include "tests/support/dealt_plan.h"
#include "tests/support/rank_group.h"
#include "training/first_state.h"
#include "training/momentum_correction/corrected_allreduces.h"
#include "training/stage_trainer.h"
#include "training/vote/step_voter.h"

namespace motley {
namespace {

using Values = std::vector<float>;
using Parameters = std::map<std::string, Values>;

constexpr int kMicroBatches = 4;
constexpr int kSteps = 25;
constexpr double kDensity = 0.05;

Config config_with(double clip) {
  Config config;
  config.model.kind = "mlp";
  config.model.layers = 2;
  config.model.width = 24;
  config.model.context = 8;
  config.model.vocab = 13;
  config.data.kind = "synthetic";
  config.train.optimizer = "sgd";
  config.train.momentum = 0.9;
  config.train.lr = 0.05;
  config.train.weight_decay = 0.02;
  config.train.warmup_steps = 0;
  config.train.schedule = "constant";
  config.train.clip = clip;
  config.train.global_batch = kMicroBatches;
  return config;
}

// The whole model on each of two machines, which compute 3 and 1 of the micro-batches.
Plan replicas_of(const ModelSpec& model) {
  Plan plan = dealt_plan(model, {{{Rank{0}, 3}, {Rank{1}, 1}}});
  plan.ranks[0] = {.machine = "a", .device = "cpu"};
  plan.ranks[1] = {.machine = "b", .device = "cpu"};
  plan.micro_batches = kMicroBatches;
  plan.gradient_codec = "topk(0.05)";
  return plan;
}

Parameters copies_of(const StageTrainer& trainer) {
  Parameters copies;
  for (const HeldParameter& parameter : trainer.held().front().parameters) {
    copies[parameter.spec.name] = {parameter.values.begin(), parameter.values.end()};
  }
  return copies;
}

// Trains with ranks; returns the final parameters, which must be equal on both.
Parameters trained(const Config& config) {
  const ModelSpec model = describe_model(config.model).value();
  const Plan plan = replicas_of(model);
  const CorrectedAllreduces corrected =
      corrected_allreduces(config, plan, model, /*tied_across_ranks=*/false);
  EXPECT_EQ(corrected.momentum, 0.9F);
  const Schedule schedule = make_schedule(plan, /*tied_across_ranks=*/false).value();
  RankGroup group("inproc", 2);
  Parameters ends[2];
  group.run([&](Rank self) {
    const c10::InferenceMode no_recording;
    set_compute_threads(1);
    ProgressCounter work;
    const auto trainer = StageTrainer::make(config, plan, self, model, work).value();
    StageState state(trainer->held(), trainer->make_memory(), "");
    CheckpointState progress = fill_state(state, config, model, "", work).value();
    StepVoter voter(
        config.train, static_cast<int>(model.layers.size()), copy_groups(plan, false), self,
        [&] { return trainer->loss(); }, state, std::move(progress), [] { return false; },
        [] { return false; }, {corrected.layers, corrected.parameter_share});
    FrameLink link(group.at(self), self, 1, plan_hash(plan));
    Activity activity;
    ExecutorOptions options;
    options.gradients.chain = plan.gradient_codec;
    options.gradients.momentum = corrected.momentum;
    options.local_clip = local_clip(corrected, config, plan, model, self);
    const auto executor =
        Executor::make(self, plan, link, {*trainer, state, voter}, activity, options).value();
    for (int i = 0; i < kSteps; ++i) {
      const CheckpointState& so_far = voter.progress();
      const auto ran = executor->run(
          schedule, {.step = so_far.step + 1, .training = true, .first_sample = so_far.samples});
      ASSERT_TRUE(ran.ok()) << describe(ran.error());
    }
    ends[self.index()] = copies_of(*trainer);
  });
  EXPECT_EQ(ends[0], ends[1]);
  return ends[0];
}

struct PlainReplica {
  std::vector<int> micros;
  Values velocity;
  Values unsent;
};

class PlainDgc {
 public:
  explicit PlainDgc(const Config& config)
      : config_(config), model_(describe_model(config.model).value()) {
    set_compute_threads(1);
    Plan plan = dealt_plan(model_, {{{Rank{0}, kMicroBatches}}});
    plan.ranks[0] = {.machine = "a", .device = "cpu"};
    plan.micro_batches = kMicroBatches;
    ProgressCounter work;
    trainer_ = StageTrainer::make(config, plan, Rank{0}, model_, work).value();
    state_.emplace(trainer_->held(), trainer_->make_memory(), "");
    EXPECT_TRUE(fill_state(*state_, config, model_, "", work).ok());
    const Plan shared = replicas_of(model_);
    const std::vector<Rank> owners = micro_batch_owners(shared.chunks.front());
    for (int replica = 0; replica < 2; ++replica) {
      PlainReplica& each = replicas_.emplace_back();
      each.velocity.resize(arena().size(), 0.0F);
      each.unsent.resize(arena().size(), 0.0F);
      for (int micro = 0; micro < kMicroBatches; ++micro) {
        if (owners[static_cast<std::size_t>(micro)] == Rank{replica}) each.micros.push_back(micro);
      }
    }
    decays_.resize(arena().size(), 0.0F);
  }

  void step(std::int64_t number) {
    Values sum(arena().size(), 0.0F);
    for (PlainReplica& replica : replicas_) {
      const Values sent = send(replica, clipped(gradient_of(replica, number), replica));
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += sent[i];
    }
    const auto scale = static_cast<float>(1.0 / tokens());
    const auto lr = static_cast<float>(config_.train.lr);
    const auto momentum = static_cast<float>(config_.train.momentum);
    for (const HeldParameter& parameter : trainer_->held().front().parameters) {
      const auto decay =
          static_cast<float>(parameter.spec.decayed ? config_.train.weight_decay : 0);
      const auto at = static_cast<std::size_t>(parameter.gradients.data() - arena().data());
      for (std::size_t i = 0; i < parameter.values.size(); ++i) {
        float& decayed = decays_[at + i];
        decayed = decayed * momentum + decay * parameter.values[i];
        parameter.values[i] -= lr * (decayed + sum[at + i] * scale);
      }
    }
  }

  [[nodiscard]] Parameters parameters() const { return copies_of(*trainer_); }

 private:
  [[nodiscard]] std::span<float> arena() const {
    return trainer_->held().front().reduced_gradients;
  }

  [[nodiscard]] double tokens() const {
    return static_cast<double>(kMicroBatches) * static_cast<double>(model_.tokens_per_sample);
  }

  Values gradient_of(const PlainReplica& replica, std::int64_t number) {
    const c10::InferenceMode no_recording;
    std::ranges::fill(arena(), 0.0F);
    trainer_->begin({.step = number,
                     .training = true,
                     .first_sample = static_cast<std::uint64_t>((number - 1) * kMicroBatches)});
    for (const int micro : replica.micros) {
      trainer_->load(MicroId{micro});
      trainer_->forward(ChunkId{0}, MicroId{micro});
      trainer_->backward(ChunkId{0}, MicroId{micro}, BackwardPart::kWhole, nullptr);
    }
    return {arena().begin(), arena().end()};
  }

  // For N replicas with shares of 1/N: train.clip / sqrt(N).
  [[nodiscard]] Values clipped(Values gradient, const PlainReplica& replica) const {
    if (config_.train.clip == 0) return gradient;
    const double share = static_cast<double>(replica.micros.size()) / kMicroBatches;
    const double most = config_.train.clip * std::sqrt(share) * tokens();
    double norm2 = 0;
    for (const float value : gradient) norm2 += static_cast<double>(value) * value;
    const auto factor = static_cast<float>(std::min(1.0, most / std::sqrt(norm2)));
    for (float& value : gradient) value *= factor;
    return gradient;
  }

  Values send(PlainReplica& replica, const Values& gradient) const {
    const auto momentum = static_cast<float>(config_.train.momentum);
    auto& [micros, velocity, unsent] = replica;
    std::vector<std::size_t> places(gradient.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    for (const std::size_t i : places) {
      velocity[i] = momentum * velocity[i] + gradient[i];
      unsent[i] += velocity[i];
    }
    std::ranges::stable_sort(places, std::greater<>{},
                             [&unsent = unsent](std::size_t i) { return std::abs(unsent[i]); });
    places.resize(
        static_cast<std::size_t>(std::llround(kDensity * static_cast<double>(gradient.size()))));
    Values sent(gradient.size(), 0.0F);
    for (const std::size_t i : places) {
      sent[i] = std::exchange(unsent[i], 0.0F);
      velocity[i] = 0;
    }
    return sent;
  }

  const Config config_;
  const ModelSpec model_;
  std::unique_ptr<StageTrainer> trainer_;
  std::optional<StageState> state_;
  std::vector<PlainReplica> replicas_;
  Values decays_;
};

Parameters plainly_trained(const Config& config) {
  PlainDgc plain(config);
  for (std::int64_t step = 1; step <= kSteps; ++step) plain.step(step);
  return plain.parameters();
}

// Bit-identical: only the senders apply the momentum.
TEST(CorrectedTraining, IsDeepGradientCompression) {
  const Config config = config_with(/*clip=*/0);
  EXPECT_EQ(trained(config), plainly_trained(config));
}

// The norm is added in another order, so the last bit of a factor may differ.
TEST(CorrectedTraining, ClipsWhatEachReplicaGives) {
  const Config config = config_with(/*clip=*/0.1);
  const Parameters expected = plainly_trained(config);
  const Parameters parameters = trained(config);
  ASSERT_EQ(parameters.size(), expected.size());
  for (const auto& [name, values] : expected) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(parameters.at(name)[i], values[i], 1e-5) << name;
    }
  }
  EXPECT_NE(expected, plainly_trained(config_with(/*clip=*/0))) << "nothing was clipped";
}

}  // namespace
}  // namespace motley

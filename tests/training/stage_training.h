// The ranks of a small GPT's plan in threads, each with the trainer, state, votes and executor of a
// worker, on the tested device.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <c10/core/InferenceMode.h>

#include "models/kernels/torch_threads.h"
#include "partitioner/search/planner.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/schedules.h"
#include "tests/support/dealt_plan.h"
#include "tests/support/rank_group.h"
#include "tests/support/tested_device.h"
#include "training/device_stage_clock.h"
#include "training/first_state.h"
#include "training/stage_trainer.h"
#include "training/vote/step_voter.h"

namespace motley {

inline constexpr int kMicroBatches = 4;

inline Config small_config() {
  Config config;
  config.model.layers = 2;
  config.model.width = 32;
  config.model.heads = 4;
  config.model.context = 16;
  config.model.vocab = 61;
  config.data.kind = "synthetic";
  config.train.global_batch = kMicroBatches;
  config.train.warmup_steps = 2;
  return config;
}

struct StageShape {
  std::vector<std::vector<Replica>> chunks;  // [ChunkId]
  std::string schedule = "1f1b";
  bool recompute = false;
  std::string codec = "none";
};

inline Plan plan_of(const ModelSpec& model, const StageShape& shape) {
  Plan plan = dealt_plan(model, shape.chunks);
  for (ChunkPlan& chunk : plan.chunks) {
    chunk.recompute = shape.recompute;
    chunk.codec = shape.codec;
  }
  for (RankPlan& rank : plan.ranks) rank = {.machine = "a", .device = "cpu"};
  plan.micro_batches = kMicroBatches;
  plan.schedule = shape.schedule;
  return plan;
}

// The objects of a rank, as in the worker.
struct TrainedRank {
  std::unique_ptr<StageTrainer> trainer;
  std::optional<StageState> state;
  std::optional<StepVoter> voter;
  std::unique_ptr<StageClock> clock = stage_clock_of(tested_device());
  std::vector<StepTimes> times;  // of every run so far
  std::vector<double> run_s;     // by the host's clock
  TraceRecorder trace{10000};

  TrainedRank(const Config& config,
              const Plan& plan,
              Rank self,
              const ModelSpec& model,
              const std::optional<GradientScale>& scale) {
    ProgressCounter work;
    trainer = StageTrainer::make(config, plan, self, model, work, tested_device()).value();
    state.emplace(trainer->held(), trainer->make_memory(), model.tied_pair()->parameter);
    CheckpointState progress = fill_state(*state, config, model, "", work).value();
    if (scale) progress.gradient_scale = scale;
    voter.emplace(
        config.train, static_cast<int>(model.layers.size()),
        copy_groups(plan, tied_across_ranks(model, plan)), self, [this] { return trainer->loss(); },
        *state, std::move(progress));
  }
};

// The ranks of a plan.
class StageTraining {
 public:
  // `scale`: the gradient scale in fp16; without it, that of a new run.
  explicit StageTraining(const StageShape& shape,
                         const Config& config = small_config(),
                         const std::optional<GradientScale>& scale = {})
      : config_(config),
        model_(describe_model(config.model).value()),
        plan_(plan_of(model_, shape)),
        group_("inproc", plan_.rank_count()) {
    set_compute_threads(1);
    const c10::InferenceMode no_recording;
    for (Rank rank{0}; rank.value < plan_.rank_count(); ++rank.value) {
      ranks_.push_back(std::make_unique<TrainedRank>(config_, plan_, rank, model_, scale));
    }
  }

  [[nodiscard]] TrainedRank& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  // Runs `count` more steps on every rank; returns their results, [Rank].
  std::vector<Result<void>> steps(int count) {
    const bool tied = tied_across_ranks(model_, plan_);
    return run(make_schedule(plan_, tied).value(), /*training=*/true, count);
  }

  std::vector<Result<void>> evaluate() {
    return run(forward_schedule(schedule_input(plan_, /*tied_across_ranks=*/false)),
               /*training=*/false, 1);
  }

  // Every parameter of the model, from the first replica.
  [[nodiscard]] std::map<std::string, std::vector<float>> parameters() const {
    std::map<std::string, std::vector<float>> all;
    for (const auto& rank : ranks_) {
      for (const TensorView& view : rank->state->parameter_views()) {
        all[view.name] = {view.values.begin(), view.values.end()};
      }
    }
    return all;
  }

 private:
  std::vector<Result<void>> run(const Schedule& schedule, bool training, int count) {
    std::vector<Result<void>> ended(ranks_.size());
    group_.run([&](Rank self) {
      const c10::InferenceMode no_recording;
      set_compute_threads(1);
      TrainedRank& mine = *ranks_[self.index()];
      FrameLink link(group_.at(self), self, 1, plan_hash(plan_));
      Activity activity;
      const auto executor =
          Executor::make(self, plan_, link,
                         {*mine.trainer, *mine.state, *mine.voter, mine.clock.get()}, activity, {});
      (*executor)->record(&mine.trace);
      for (int i = 0; i < count && ended[self.index()].ok(); ++i) {
        const CheckpointState& progress = mine.voter->progress();
        const double start_s = now_s();
        const auto times =
            (*executor)->run(schedule, {progress.step + 1, training, progress.samples,
                                        progress.gradient_scale.value_or(GradientScale{}).value});
        if (times.ok()) {
          mine.times.push_back(*times);
          mine.run_s.push_back(now_s() - start_s);
        } else {
          ended[self.index()] = times.error();
        }
      }
      (*executor)->record(nullptr);
    });
    return ended;
  }

  const Config config_;
  const ModelSpec model_;
  const Plan plan_;
  RankGroup group_;
  std::vector<std::unique_ptr<TrainedRank>> ranks_;
};

inline void expect_ok(const std::vector<Result<void>>& ended) {
  for (const auto& each : ended) EXPECT_TRUE(each.ok()) << describe(each.error());
}

inline const StageShape kAlone{.chunks = {{{Rank{0}, kMicroBatches}}}};

}  // namespace motley

// One rank of a simulated run over any transport, on a clock that does not wait; and models and
// jobs for the tests.
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "models/spec/model_spec.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/schedules.h"
#include "pipeline/schedule/validate.h"
#include "simulated/virtual_compute.h"
#include "tests/simulated/stalling_time.h"
#include "training/vote/step_voter.h"

namespace motley {

// Six layers: the embedding, two blocks of two, the head.
inline ModelSpec six_layers(int width, int context, int vocab) {
  ModelConfig config;
  config.layers = 2;
  config.width = width;
  config.heads = 4;
  config.context = context;
  config.vocab = vocab;
  return describe_model(config).value();
}

inline TrainConfig eight_samples() {
  TrainConfig train;
  train.global_batch = 8;
  train.warmup_steps = 0;
  return train;
}

class SimulatedRank {
 public:
  // All references must outlive this object.
  SimulatedRank(
      const Plan& plan, const ModelSpec& model, Rank self, VirtualSpeed speed, Transport& transport)
      : plan_(plan),
        tied_(tied_across_ranks(model, plan)),
        compute_(
            eight_samples(), model, plan, self, speed, std::make_unique<StallingTime>(slept_s_)),
        voter_(eight_samples(),
               static_cast<int>(model.layers.size()),
               copy_groups(plan, tied_),
               self,
               [this] { return compute_.loss(); },
               compute_,
               {}),
        link_(transport, self, 1, plan_hash(plan)) {
    auto executor = Executor::make(self, plan, link_, {compute_, compute_, voter_}, activity_,
                                   {.gradients = {.chain = plan.gradient_codec}});
    EXPECT_TRUE(executor.ok()) << describe(executor.error());
    if (executor.ok()) executor_ = std::move(executor).value();
  }

  void run(int steps) {
    const auto schedule = make_schedule(plan_, tied_);
    ASSERT_TRUE(schedule.ok()) << describe(schedule.error());
    ASSERT_TRUE(validate_schedule(*schedule, tied_).ok());
    for (int step = 1; step <= steps; ++step) {
      const auto times = executor_->run(*schedule, {step, true, voter_.progress().samples});
      ASSERT_TRUE(times.ok()) << describe(times.error());
    }
  }

  [[nodiscard]] VirtualCompute& compute() { return compute_; }

  [[nodiscard]] const StepVoter& voter() const { return voter_; }

  [[nodiscard]] const FrameLink& link() const { return link_; }

  [[nodiscard]] double slept_s() const { return slept_s_; }

 private:
  const Plan& plan_;
  const bool tied_;
  double slept_s_ = 0;
  VirtualCompute compute_;
  StepVoter voter_;
  FrameLink link_;
  Activity activity_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace motley

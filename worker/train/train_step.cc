#include "worker/train/train_step.h"

#include <vector>

#include "base/clock.h"
#include "base/system/system_memory.h"

namespace motley {

namespace {

// What went between the two counts, to whom anything went.
std::vector<StepReport::Sent> sent_between(const std::vector<std::uint64_t>& before,
                                           const std::vector<std::uint64_t>& after) {
  std::vector<StepReport::Sent> sent;
  for (Rank to{0}; to.index() < after.size(); ++to.value) {
    const std::uint64_t had = to.index() < before.size() ? before[to.index()] : 0;
    if (after[to.index()] > had) sent.push_back({to, after[to.index()] - had});
  }
  return sent;
}

}  // namespace

Result<TrainedStep> TrainStep::run_step() {
  const std::uint64_t bytes_before = link_.wire_bytes();
  const std::vector<std::uint64_t> sent_before = link_.sent_bytes();
  const GradientScale scale = progress().gradient_scale.value_or(GradientScale{});
  MOTLEY_ASSIGN(const RunTimes times, executor_.run(schedule_, {progress().step + 1, true,
                                                                progress().samples, scale.value}));
  return TrainedStep{voter_.outcome(), times, link_.wire_bytes() - bytes_before,
                     sent_between(sent_before, link_.sent_bytes()), memory_bytes()};
}

std::int64_t TrainStep::memory_bytes() {
  constexpr double kLook_s = 0.25;
  const double time_s = now_s();
  if (!looked_at_s_ || time_s - *looked_at_s_ >= kLook_s) {
    memory_bytes_ = resident_bytes();
    looked_at_s_ = time_s;
  }
  return memory_bytes_;
}

Result<std::optional<Evaluation>> HeldOutEvaluator::evaluate(std::int64_t step) {
  double loss_sum = 0;
  double all = 0;
  double right = 0;
  bool counts = true;
  for (int batch = 0; batch < count_; ++batch) {
    const auto first_sample =
        static_cast<std::uint64_t>(batch) * static_cast<std::uint64_t>(samples_);
    MOTLEY_ASSIGN([[maybe_unused]] const RunTimes times,
                  executor_.run(schedule_, {step, false, first_sample}));
    const StepOutcome& outcome = voter_.outcome();
    if (outcome.count == 0) continue;
    loss_sum += outcome.loss * outcome.count;
    all += outcome.count;
    right += outcome.accuracy.value_or(0) * outcome.count;
    counts = counts && outcome.accuracy;
  }
  Evaluation evaluation{
      .tokens = reported_count(all), .loss = loss_sum / all, .bytes_per_token = bytes_per_token_};
  if (counts && all > 0) evaluation.accuracy = right / all;
  return std::optional(evaluation);
}

}  // namespace motley

#include "pipeline/collectives/gradient_reducer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "compression/kernels/squared_norm.h"

namespace motley {

Result<std::unique_ptr<GradientReducer>> GradientReducer::make(const FrameLink& link,
                                                               Rank self,
                                                               const CompressorOptions& options,
                                                               StallTimeout stall_timeout,
                                                               double local_clip) {
  // Reports errors now rather than at the end of the first step.
  MOTLEY_TRY(FeedbackEncoder::make(options));
  return std::unique_ptr<GradientReducer>(
      new GradientReducer(link, self, options, stall_timeout, local_clip));
}

GradientReducer::GradientReducer(const FrameLink& link,
                                 Rank self,
                                 CompressorOptions options,
                                 StallTimeout stall_timeout,
                                 double local_clip)
    : self_(self),
      options_(std::move(options)),
      stall_timeout_(stall_timeout),
      local_clip_(local_clip),
      link_(link),
      thread_([this] { work(); }) {}

GradientReducer::~GradientReducer() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    for (Running& each : running_) each.watermark->abandon();
  }
  changed_.notify_all();
  thread_.join();
}

Result<void> GradientReducer::begin(std::int64_t step, const std::vector<Task>& tasks) {
  std::vector<Running> running;
  for (const Task& task : tasks) {
    MOTLEY_ASSIGN(Reduction* const allreduce, reduction_for(task));
    const bool is_clipped = local_clip_ > 0 && task.group_members.machines.size() > 1;
    running.push_back({task.id, allreduce->allreduce.get(), task.values, is_clipped,
                       std::make_unique<ReadyWatermark>(allreduce->allreduce->notifier()), 0,
                       std::nullopt});
  }
  {
    const std::scoped_lock lock(mutex_);
    MOTLEY_CHECK(next_ == running_.size(), "step {} begins during all-reduces of step {}", step,
                 step_);
    step_ = step;
    next_ = 0;
    running_ = std::move(running);
  }
  changed_.notify_all();
  return {};
}

Result<GradientReducer::Reduction*> GradientReducer::reduction_for(const Task& task) {
  Reduction& allreduce = reductions_[task.id];
  if (allreduce.allreduce == nullptr) {
    const AllreducePlan plan(task.group_members.machines, task.values.size(), kBucketValues,
                             task.group_members.link_speeds);
    MOTLEY_ASSIGN(allreduce.encoder, FeedbackEncoder::make(options_));
    MOTLEY_ASSIGN(allreduce.allreduce,
                  HierarchicalAllreduce::make(link_, self_, task.id, plan, *allreduce.encoder,
                                              {.stall_timeout = stall_timeout_}));
  }
  return &allreduce;
}

bool GradientReducer::has(const AllreduceId& id) const {
  return std::ranges::find(running_, id, &Running::id) != running_.end();
}

void GradientReducer::set_ready(const AllreduceId& id, std::size_t first) {
  Running& moved = running(id);
  if (moved.start_s == 0) moved.start_s = now_s();
  moved.watermark->set(first);
}

Result<GradientReducer::Span> GradientReducer::wait(const AllreduceId& id) {
  Running& waited = running(id);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waited.outcome.has_value(); });
  MOTLEY_ASSIGN(const double end_s, *waited.outcome);
  return Span{waited.start_s, end_s};
}

void GradientReducer::end_step(StepEffect effect) {
  for (auto& [id, allreduce] : reductions_) allreduce.encoder->end_step(effect);
}

void GradientReducer::add_feedback(FeedbackKind what,
                                   const AllreduceId& id,
                                   std::span<float> values) {
  const auto allreduce = reductions_.find(id);
  if (allreduce != reductions_.end()) allreduce->second.encoder->add_feedback(what, values);
}

Result<void> GradientReducer::set_feedback(FeedbackKind what,
                                           FeedbackScope scope,
                                           const Task& task) {
  MOTLEY_ASSIGN(Reduction* const allreduce, reduction_for(task));
  for (const EncodedSlice& encoded : allreduce->allreduce->encoded_slices()) {
    if (scope == FeedbackScope::kAll && !encoded.takes_over) continue;
    allreduce->encoder->set_feedback(what, encoded.slice, task.values);
  }
  return {};
}

// The vector does not change while an all-reduce in it is running.
GradientReducer::Running& GradientReducer::running(const AllreduceId& id) {
  const auto found = std::ranges::find(running_, id, &Running::id);
  MOTLEY_CHECK(found != running_.end(), "{} has no all-reduce in step {}", to_words(id), step_);
  return *found;
}

void GradientReducer::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || next_ < running_.size(); });
    if (ending_) return;
    Running& now = running_[next_];
    // After a failed all-reduce, messages of the next would not match either.
    const bool is_first = next_ == 0;
    const bool failed = !is_first && !running_[next_ - 1].outcome->ok();
    lock.unlock();
    if (is_first) clip();
    Result<double> outcome = failed ? *running_[next_ - 1].outcome : carry_out(now);
    lock.lock();
    now.outcome = std::move(outcome);
    ++next_;
    changed_.notify_all();
  }
}

void GradientReducer::clip() {
  double norm2 = 0;
  for (const Running& each : running_) {
    if (!each.is_clipped) continue;
    // The compute thread has deadlines of its own and abandons the watermark when one passes.
    while (each.watermark->first() > 0 && !each.watermark->abandoned()) {
      (void)each.allreduce->notifier()->wait(stall_timeout_.deadline());
    }
    if (each.watermark->abandoned()) return;
    norm2 += squared_norm(each.values);
  }
  const double norm = std::sqrt(norm2);
  // Values that are not finite stay so, for the vote to detect.
  if (!(norm > local_clip_) || !std::isfinite(norm)) return;
  const auto factor = static_cast<float>(local_clip_ / norm);
  for (const Running& each : running_) {
    if (!each.is_clipped) continue;
    for (float& value : each.values) value *= factor;
  }
}

Result<double> GradientReducer::carry_out(Running& running) const {
  MOTLEY_TRY(running.allreduce->run(step_, running.values, *running.watermark));
  return now_s();
}

}  // namespace motley

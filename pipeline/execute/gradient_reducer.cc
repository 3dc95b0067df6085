#include "pipeline/execute/gradient_reducer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace motley {

Result<std::unique_ptr<GradientReducer>> GradientReducer::make(const FrameLink& link,
                                                               Rank self,
                                                               const CompressorOptions& options,
                                                               Patience patience) {
  // Refused now rather than at the end of the first step.
  MOTLEY_TRY(FeedbackEncoder::make(options));
  return std::unique_ptr<GradientReducer>(new GradientReducer(link, self, options, patience));
}

GradientReducer::GradientReducer(const FrameLink& link,
                                 Rank self,
                                 CompressorOptions options,
                                 Patience patience)
    : self_(self), options_(std::move(options)), patience_(patience), link_(link), thread_([this] {
        work();
      }) {}

GradientReducer::~GradientReducer() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    for (Running& each : running_) each.mark->abandon();
  }
  changed_.notify_all();
  thread_.join();
}

Result<void> GradientReducer::begin(std::int64_t step, const std::vector<Task>& tasks) {
  std::vector<Running> running;
  for (const Task& task : tasks) {
    MOTLEY_ASSIGN(Sum* const sum, sum_for(task));
    running.push_back({task.id, sum->sum.get(), task.values,
                       std::make_unique<FinalMark>(sum->sum->bell()), 0, std::nullopt});
  }
  {
    const std::scoped_lock lock(mutex_);
    MOTLEY_CHECK(next_ == running_.size(), "step {} begins while sums of step {} run", step, step_);
    step_ = step;
    next_ = 0;
    running_ = std::move(running);
  }
  changed_.notify_all();
  return {};
}

Result<GradientReducer::Sum*> GradientReducer::sum_for(const Task& task) {
  Sum& sum = sums_[task.id];
  if (sum.sum == nullptr) {
    const AllreducePlan plan(task.holders.machines, task.values.size(), kBucketValues,
                             task.holders.link_speeds);
    MOTLEY_ASSIGN(sum.encoder, FeedbackEncoder::make(options_));
    MOTLEY_ASSIGN(sum.sum, HierarchicalSum::make(link_, self_, task.id, plan, *sum.encoder,
                                                 {.patience = patience_}));
  }
  return &sum;
}

bool GradientReducer::has(const SumId& id) const {
  return std::ranges::find(running_, id, &Running::id) != running_.end();
}

void GradientReducer::set_final(const SumId& id, std::size_t first) {
  Running& moved = running(id);
  if (moved.start_s == 0) moved.start_s = now_s();
  moved.mark->set(first);
}

Result<GradientReducer::Span> GradientReducer::wait(const SumId& id) {
  Running& waited = running(id);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waited.outcome.has_value(); });
  MOTLEY_ASSIGN(const double end_s, *waited.outcome);
  return Span{waited.start_s, end_s};
}

void GradientReducer::forget() {
  for (auto& [id, sum] : sums_) sum.encoder->forget();
}

void GradientReducer::add_residuals(const SumId& id, std::span<float> values) {
  const auto sum = sums_.find(id);
  if (sum != sums_.end()) sum->second.encoder->add_residuals(values);
}

// The vector does not change while a sum of it is under way.
GradientReducer::Running& GradientReducer::running(const SumId& id) {
  const auto found = std::ranges::find(running_, id, &Running::id);
  MOTLEY_CHECK(found != running_.end(), "{} is not summed in step {}", to_words(id), step_);
  return *found;
}

void GradientReducer::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || next_ < running_.size(); });
    if (ending_) return;
    Running& now = running_[next_];
    // After one that failed the messages of the next would not fit either.
    const bool failed = next_ > 0 && !running_[next_ - 1].outcome->ok();
    lock.unlock();
    Result<double> outcome = failed ? *running_[next_ - 1].outcome : carry_out(now);
    lock.lock();
    now.outcome = std::move(outcome);
    ++next_;
    changed_.notify_all();
  }
}

Result<double> GradientReducer::carry_out(Running& running) const {
  MOTLEY_TRY(running.sum->run(step_, running.values, *running.mark));
  return now_s();
}

}  // namespace motley

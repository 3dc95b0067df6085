#include "pipeline/execute/action_times.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace motley {
namespace {

// The cause of the waits inside the action.
WaitCause cause_of(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
      return WaitCause::kActivation;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      return WaitCause::kGradient;
    case ActionKind::kReduce:
    case ActionKind::kReduceTied:
    case ActionKind::kAdopt:
      return WaitCause::kSum;
    case ActionKind::kVote:
      return WaitCause::kVote;
    default:
      return WaitCause::kOther;
  }
}

}  // namespace

void ActionTimes::begin(const BatchPosition& position) {
  position_ = position;
  clock_.begin();
  parts_.push_back({});
}

void ActionTimes::end_part(const Action& action, double waited_s) {
  mark({action, waited_s, /*is_last=*/false, position_.training, records(), position_.step});
}

void ActionTimes::end(const Action& action, double waited_s) {
  mark({action, waited_s, /*is_last=*/true, position_.training, records(), position_.step});
}

// An evaluation is not part of the step before it.
bool ActionTimes::records() const {
  return recorder_ != nullptr && position_.training;
}

void ActionTimes::mark(Part part) {
  clock_.mark(part.waited_s);
  parts_.push_back(std::move(part));
}

StepTimes ActionTimes::take_totals(bool training) {
  resolve();
  return std::exchange(sums_[training ? 1 : 0], {});
}

void ActionTimes::record(TraceRecorder* recorder) {
  if (recorder_ != nullptr) {
    clock_.finish();
    resolve();
  }
  if (recorder != nullptr && recorder_ == nullptr) record_start_s_ = now_s();
  recorder_ = recorder;
}

std::optional<ActionTimes::UnderWay> ActionTimes::under_way() {
  recorder_ = nullptr;
  resolve();
  if (parts_.empty() || !parts_.front().action) return {};
  return UnderWay{*parts_.front().action, parts_.front().step};
}

void ActionTimes::resolve() {
  for (const double end_s : clock_.reached()) {
    resolve(parts_.front(), end_s);
    parts_.pop_front();
  }
}

void ActionTimes::resolve(const Part& part, double end_s) {
  const double start_s = std::exchange(end_s_, end_s);
  if (!part.action) {
    compute_start_s_ = end_s;
    return;
  }
  const double wait_end_s = start_s + std::min(part.waited_s, end_s - start_s);
  StepTimes& sums = sums_[part.training ? 1 : 0];
  sums.wait_s.of(cause_of(*part.action)) += wait_end_s - start_s;
  sums.compute_s += end_s - wait_end_s;
  if (part.action->kind == ActionKind::kStep) sums.optimizer_s += end_s - wait_end_s;
  if (part.action->kind == ActionKind::kLoad) sums.data_s += end_s - wait_end_s;
  if (part.waited_s > 0) {
    add_span("compute", part, compute_start_s_, start_s);
    add_span("wait", part, start_s, wait_end_s);
    compute_start_s_ = wait_end_s;
  }
  if (part.is_last) {
    add_span("compute", part, compute_start_s_, end_s);
    compute_start_s_ = end_s;
  }
}

void ActionTimes::add_span(const char* lane, const Part& part, double start_s, double end_s) {
  constexpr double kShortest_s = 1e-6;  // shorter spans would clutter the trace
  if (!part.recorded || recorder_ == nullptr || end_s - start_s < kShortest_s) return;
  recorder_->add({self_, lane, to_text(*part.action), start_s - record_start_s_, end_s - start_s,
                  static_cast<int>(part.step)});
}

// An all-reduce may have begun in an earlier step, before the recording.
void ActionTimes::add_span(const char* lane, const Action& action, double start_s, double end_s) {
  start_s = std::max(start_s, record_start_s_);
  add_span(lane, {action, 0, true, position_.training, records(), position_.step}, start_s, end_s);
}

}  // namespace motley

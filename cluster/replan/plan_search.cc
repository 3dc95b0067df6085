#include "cluster/replan/plan_search.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/system/blocked_signals.h"

namespace motley {

class PlanSearch::Watch : public SearchObserver {
 public:
  bool may_continue(double /*step_s*/) override { return !ends_; }

  void end() { ends_ = true; }

 private:
  std::atomic<bool> ends_ = false;
};

namespace {

PlanningInput watched(PlanningInput input, SearchObserver* watch) {
  input.options.watch = watch;
  return input;
}

}  // namespace

PlanSearch::PlanSearch(PlanningInput input, Find find)
    : watch_(std::make_unique<Watch>()),
      input_(watched(std::move(input), watch_.get())),
      find_(std::move(find)) {}

PlanSearch::~PlanSearch() {
  watch_->end();
  if (found_.valid()) found_.wait();
}

Result<void> PlanSearch::begin(RunMeasurement run, double least_gain) {
  const BlockedSignals blocked;
  try {
    found_ = std::async(std::launch::async, [this, run = std::move(run), least_gain] {
      return find_(input_, run, least_gain);
    });
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kInternal, "no thread to plan on", error.what(), ""};
  }
  return {};
}

std::optional<Result<std::optional<BetterPlan>>> PlanSearch::take() {
  if (!found_.valid() || found_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return {};
  }
  return found_.get();
}

}  // namespace motley

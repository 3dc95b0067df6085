// SearchBudget: ends a plan search when its budget of work or seconds is used up, and reports
// progress.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/process/progress_line.h"
#include "partitioner/search/plan_options.h"

namespace motley {

class SearchBudget : public SearchObserver {
 public:
  using Clock = std::function<double()>;

  // Without `seconds` the budget is counted work, so that a search ends at the same point on any
  // machine under any load. `line` must outlive it; nullptr: no progress display.
  explicit SearchBudget(std::optional<double> seconds,
                        Clock clock = now_s,
                        ProgressLine* line = nullptr);

  bool may_continue(double step_s) override;

  void count_work(std::int64_t actions) override { work_ += actions; }

  // The budget without `seconds`: about ten seconds of work.
  static constexpr std::int64_t kWorkMax = 250'000'000;

 private:
  [[nodiscard]] bool is_spent(double taken_s) const;
  [[nodiscard]] std::string words() const;

  std::optional<double> seconds_;
  Clock clock_;
  ProgressLine* line_;
  double start_s_;
  double reported_s_;  // time of the last progress report, after the start
  double step_s_;
  std::int64_t work_ = 0;
};

}  // namespace motley

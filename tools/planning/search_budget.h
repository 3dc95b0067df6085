// SearchBudget: ends a search for a plan when it has had its work or its seconds, and says to who
// waits how it goes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cluster/process/work_line.h"
#include "partitioner/search/plan_options.h"

namespace motley {

class SearchBudget : public SearchWatch {
 public:
  using Clock = std::function<double()>;

  // Of work alone where there are no seconds: counted, so that the same search ends at the same
  // place however slow or busy the computer is.
  // `line` outlives it; nullptr: nobody waits.
  explicit SearchBudget(std::optional<double> seconds,
                        Clock clock = now_s,
                        WorkLine* line = nullptr);

  bool goes_on(double step_s) override;

  void count_work(std::int64_t actions) override { work_ += actions; }

  // What it may do without seconds: about ten of them.
  static constexpr std::int64_t kWorkMax = 250'000'000;

 private:
  [[nodiscard]] bool is_spent(double taken_s) const;
  [[nodiscard]] std::string words() const;

  std::optional<double> seconds_;
  Clock clock_;
  WorkLine* line_;
  double start_s_;
  double told_s_;  // after the start
  double step_s_;
  std::int64_t work_ = 0;
};

}  // namespace motley

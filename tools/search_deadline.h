// SearchDeadline: ends a search for a plan after some seconds, and says on standard error how it
// goes when it takes longer than a second.
#pragma once

#include "partitioner/search/plan_options.h"

namespace motley {

class SearchDeadline : public SearchWatch {
 public:
  explicit SearchDeadline(double seconds);

  bool goes_on(double step_s) override;

 private:
  double start_s_;
  double limit_s_;
  double told_s_;  // after the start
  double step_s_;
};

}  // namespace motley

// A run's folder as the data source of its page, read through a RunView.
#pragma once

#include <utility>

#include "watch/http/run_source.h"
#include "watch/view/run_view.h"

namespace motley {

class ViewedRun : public RunSource {
 public:
  explicit ViewedRun(RunView view) : view_(std::move(view)) {}

  RunChanges look() override;
  Result<std::string> part(RunDocument part) override;
  Result<std::string> history(std::size_t points, std::int64_t after_step) override;
  Result<std::string> events(std::size_t newest) override;
  Result<std::string> metrics(MetricsFormat format) override;

 private:
  RunView view_;
};

}  // namespace motley

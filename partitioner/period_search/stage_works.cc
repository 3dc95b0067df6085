#include "partitioner/period_search/stage_works.h"

#include <utility>

namespace motley {

StageWorks::StageWorks(const StepEstimate& estimate, std::vector<int> slots)
    : estimate_(estimate),
      slots_(std::move(slots)),
      layers_(static_cast<std::size_t>(estimate.table().layer_count())),
      ranges_(layers_ * (layers_ + 1)) {}

const StageWork* StageWorks::of(int first, int last, int in_flight) {
  Range& range =
      ranges_[static_cast<std::size_t>(first) * (layers_ + 1) + static_cast<std::size_t>(last)];
  for (const bool recompute : {false, true}) {
    Work* work = split_fit(range, first, last, recompute);
    if (work != nullptr && fits(*work, in_flight)) return &work->work;
  }
  return nullptr;
}

StageWorks::Work* StageWorks::split_fit(Range& range, int first, int last, bool recompute) {
  std::int32_t& known = range.works[recompute ? 1 : 0];
  if (known == kNotAsked) {
    auto fit = estimate_.split_fit(slots_, first, last, recompute);
    known = fit ? static_cast<std::int32_t>(works_.size()) : kImpossible;
    if (fit) {
      StageWork work = estimate_.work(slots_, *fit, first, last);
      works_.push_back({*std::move(fit), std::move(work)});
    }
  }
  return known == kImpossible ? nullptr : &works_[static_cast<std::size_t>(known)];
}

bool StageWorks::fits(Work& work, int in_flight) const {
  if (in_flight <= work.fits) return true;
  if (in_flight >= work.fails) return false;
  const bool found = estimate_.fits(slots_, work.fit, work.work.first, work.work.last, in_flight);
  (found ? work.fits : work.fails) = in_flight;
  return found;
}

}  // namespace motley

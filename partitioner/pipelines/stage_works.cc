#include "partitioner/pipelines/stage_works.h"

#include <utility>

namespace motley {
namespace {

constexpr std::int32_t kNotAsked = -1;
constexpr std::int32_t kDoesNotFit = -2;

}  // namespace

StageWorks::StageWorks(const StepEstimate& estimate, std::vector<int> slots, int depth)
    : estimate_(estimate),
      slots_(std::move(slots)),
      depth_(depth),
      layers_(static_cast<std::size_t>(estimate.table().layer_count())),
      known_(layers_ * (layers_ + 1), kNotAsked) {}

const StageWork* StageWorks::of(int first, int last) {
  std::int32_t& known =
      known_[static_cast<std::size_t>(first) * (layers_ + 1) + static_cast<std::size_t>(last)];
  if (known == kNotAsked) {
    const auto fit = estimate_.fit(slots_, first, last, depth_);
    known = fit ? static_cast<std::int32_t>(works_.size()) : kDoesNotFit;
    if (fit) works_.push_back(estimate_.work(slots_, *fit, first, last));
  }
  return known == kDoesNotFit ? nullptr : &works_[static_cast<std::size_t>(known)];
}

}  // namespace motley

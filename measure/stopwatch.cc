#include "measure/stopwatch.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace motley {

Stopwatch::Stopwatch(const ComputeDevice& device)
    : device_(device), timeline_(DeviceTimeline::make(device)) {}

void Stopwatch::mark() {
  if (timeline_ != nullptr) return timeline_->mark();
  device_.finish();
  marks_s_.push_back(device_.is_host() ? thread_cpu_s() : now_s());
}

std::vector<double> Stopwatch::read_s() {
  if (timeline_ == nullptr) return std::exchange(marks_s_, {});
  timeline_->finish();
  return timeline_->reached();
}

double Stopwatch::read_now_s() {
  mark();
  const std::vector<double> marks_s = read_s();
  MOTLEY_CHECK(marks_s.size() == 1, "{} marks were not read", marks_s.size());
  return marks_s.front();
}

}  // namespace motley

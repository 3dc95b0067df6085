#include "profiling/layers/stopwatch.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace motley {

Stopwatch::Stopwatch(const ComputeDevice& device)
    : device_(device), timeline_(DeviceTimeline::make(device)) {}

void Stopwatch::mark() {
  if (timeline_ != nullptr) return timeline_->mark();
  device_.finish();
  timestamps_s_.push_back(device_.is_host() ? thread_cpu_s() : now_s());
}

std::vector<double> Stopwatch::read_s() {
  if (timeline_ == nullptr) return std::exchange(timestamps_s_, {});
  timeline_->finish();
  return timeline_->reached();
}

double Stopwatch::read_now_s() {
  mark();
  const std::vector<double> timestamps_s = read_s();
  MOTLEY_CHECK(timestamps_s.size() == 1, "{} marks were not read", timestamps_s.size());
  return timestamps_s.front();
}

}  // namespace motley

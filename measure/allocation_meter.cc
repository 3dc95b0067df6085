#include "measure/allocation_meter.h"

#include <algorithm>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "models/device/torch_compat.h"

namespace motley {

struct AllocationMeter::Impl {
  struct Report : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void* /*ptr*/,
                           std::int64_t alloc_size,
                           torch_compat::ReportedTotal /*total_allocated*/,
                           torch_compat::ReportedTotal /*total_reserved*/,
                           c10::Device of) override {
      if (of != device) return;
      held_bytes += alloc_size;  // negative when memory is given back
      peak_bytes = std::max(peak_bytes, held_bytes);
    }

    [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }

    explicit Report(c10::Device counted) : device(counted) {}

    const c10::Device device;
    std::int64_t held_bytes = 0;
    std::int64_t peak_bytes = 0;
  };

  explicit Impl(c10::Device device) : report(std::make_shared<Report>(device)) {}

  std::shared_ptr<Report> report;
  c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, report};
};

AllocationMeter::AllocationMeter(c10::Device device) : impl_(std::make_unique<Impl>(device)) {}

AllocationMeter::~AllocationMeter() = default;

std::int64_t AllocationMeter::peak_bytes() const {
  return impl_->report->peak_bytes;
}

}  // namespace motley

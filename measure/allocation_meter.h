// AllocationMeter: the most tensor memory that this thread held at once, above what it held when
// the meter began.
//
// Counts ATen's allocations on one device, exactly, where the device's allocator reports them to
// LibTorch's profiler, as those of the processor and of CUDA do. Of any other it counts what
// operations return, and looks after each one, also within another, which of that is still there:
// all but what a library takes within one operation and gives back before its end.
#pragma once

#include <cstdint>
#include <memory>

#include <c10/core/Device.h>

namespace motley {

class AllocationMeter {
 public:
  // Makes one small tensor on the device, to see whether that is reported.
  explicit AllocationMeter(c10::Device device = c10::kCPU);
  ~AllocationMeter();  // ends the measuring; meters of one thread nest
  AllocationMeter(const AllocationMeter&) = delete;
  AllocationMeter& operator=(const AllocationMeter&) = delete;

  [[nodiscard]] std::int64_t peak_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley

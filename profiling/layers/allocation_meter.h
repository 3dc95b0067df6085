// AllocationMeter: the peak of tensor memory held by this thread, above what it held when the meter
// began.
//
// Counts ATen's allocations on one device. The count is exact if the device's allocator reports to
// LibTorch's profiler, as those of the processor and of CUDA do. For other devices it tracks the
// outputs of operations, and checks after each operation, including nested ones, which of them
// still exist. That misses memory that a library allocates and frees within one operation.
#pragma once

#include <cstdint>
#include <memory>

#include <c10/core/Device.h>

namespace motley {

class AllocationMeter {
 public:
  // Creates one small tensor on the device, to detect whether its allocator reports.
  explicit AllocationMeter(c10::Device device = c10::kCPU);
  ~AllocationMeter();  // ends the measurement; meters of one thread nest
  AllocationMeter(const AllocationMeter&) = delete;
  AllocationMeter& operator=(const AllocationMeter&) = delete;

  [[nodiscard]] std::int64_t peak_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley

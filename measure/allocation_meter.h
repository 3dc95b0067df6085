// AllocationMeter: the most tensor memory that this thread held at once, above what it held when
// the meter began. Counts ATen's allocations on one device, exactly, through LibTorch's own
// reports.
#pragma once

#include <cstdint>
#include <memory>

#include <c10/core/Device.h>

namespace motley {

class AllocationMeter {
 public:
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

// Stopwatch: what computing on a device takes. On the processor seconds of the calling thread,
// which others do not lengthen; on another device seconds on the clock until it has done all that
// it was given.
#pragma once

#include "models/device/compute_device.h"

namespace motley {

class Stopwatch {
 public:
  explicit Stopwatch(const ComputeDevice& device) : device_(device) {}

  // Seconds from some moment on; only differences mean something.
  [[nodiscard]] double read_s() const;

 private:
  const ComputeDevice device_;
};

}  // namespace motley

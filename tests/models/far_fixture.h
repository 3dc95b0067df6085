// FarDevice: a test with the far device (tests/support/far/far_device.h), opened as in a job.
#pragma once

#include <cstdlib>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "models/device/compute_device.h"
#include "tests/support/far/far_device.h"

namespace motley {

inline ComputeDevice open_far_device(const char* name = "privateuseone:0") {
  ::setenv("MOTLEY_DEVICE_LIBRARY", MOTLEY_FAR_LIBRARY, /*overwrite=*/1);
  const auto device = ComputeDevice::open(name);
  if (!device.ok()) {
    ADD_FAILURE() << describe(device.error());
    std::abort();  // the tests would be void
  }
  return *device;
}

class FarDevice : public testing::Test {
 protected:
  FarDevice() {
    // The child of a fork would share the device's memory with this process.
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    motley_far_reset_counters();
  }

  // Distinct values with many significant bits.
  [[nodiscard]] static at::Tensor values(at::IntArrayRef sizes) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return at::arange(count, at::kFloat).mul_(0.7F).sin_().reshape(sizes);
  }

  [[nodiscard]] at::Tensor on_device(const at::Tensor& host) const {
    return host.to(device_.torch());
  }

  [[nodiscard]] static MotleyFarCounters counters() {
    MotleyFarCounters now;
    motley_far_counters(&now);
    return now;
  }

  const ComputeDevice device_ = open_far_device();
};

// REQUIRES: both are on the host.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor left = a.contiguous();
  const at::Tensor right = b.contiguous();
  return left.nbytes() == 0 || std::memcmp(left.data_ptr(), right.data_ptr(), left.nbytes()) == 0;
}

}  // namespace motley

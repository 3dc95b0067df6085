// ComputeDevice: the device that holds a rank's tensors and runs its operations, by its name in
// cluster files.
//
//   "cpu"               the processor
//   "cuda:N"            LibTorch's library for it is opened when a job names one; no build needs it
//   "mps"               of a Mac
//   "privateuseone:N"   what a device library registers with LibTorch; the environment's
//                       MOTLEY_DEVICE_LIBRARY names its file
//
// All except the first are used through c10's generic device interfaces alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "base/result.h"
#include "models/device/kinds/device_kinds.h"

namespace motley {

class ComputeDevice {
 public:
  // The processor.
  ComputeDevice() = default;

  // Initializes the device for this thread and process and runs a test operation on it. Devices
  // other than the processor are set to compute reproducibly (models/device/reproducible.h).
  // kConfig, listing the available devices, for an invalid name, for a device that this machine or
  // this LibTorch lacks, or one that cannot compute; kInfeasible if its memory is full; kInternal
  // if the test operation does not finish. `stall_timeout_s`: the stall timeout of waits for the
  // device.
  [[nodiscard]] static Result<ComputeDevice> open(const std::string& name,
                                                  double stall_timeout_s = kStallTimeout_s);

  static constexpr double kStallTimeout_s = 60;  // as comm.timeout_s

  [[nodiscard]] c10::Device torch() const { return device_; }

  [[nodiscard]] double stall_timeout_s() const { return stall_timeout_s_; }

  // Whether its tensors lie in this process's memory.
  [[nodiscard]] bool is_host() const { return device_.is_cpu(); }

  // Waits until the device has done all work that this thread submitted. Throws DeviceStall.
  void finish() const;

  // The device's own memory; nullopt on the host and if the device does not report it.
  [[nodiscard]] std::optional<DeviceMemoryInfo> memory() const;

  // Makes it the current device of this thread.
  void make_current() const;

 private:
  ComputeDevice(c10::Device device, double stall_timeout_s)
      : device_(device), stall_timeout_s_(stall_timeout_s) {}

  [[nodiscard]] Result<void> try_out(const std::string& name) const;

  c10::Device device_{c10::kCPU};
  double stall_timeout_s_ = kStallTimeout_s;
};

// fp64 if the device supports it, else fp32.
[[nodiscard]] at::ScalarType exact_type(c10::Device device);

// The vendor's name of a device of this machine; "" if unknown, and for the processor.
[[nodiscard]] std::string device_model(const std::string& name);

// The names of the devices that can be opened here; the processor first.
[[nodiscard]] std::vector<std::string> local_devices();

}  // namespace motley

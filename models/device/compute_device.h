// ComputeDevice: the device that holds a rank's tensors and runs its operations, by its name in
// cluster files.
//
// The library of a kind is opened when a job names such a device; no build needs it. All except the
// processor are used through c10's generic device interfaces alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "base/result.h"
#include "models/device/kinds/device_memory_info.h"
#include "plan/device_kinds.h"

namespace motley {

class ComputeDevice {
 public:
  // The processor.
  ComputeDevice() = default;

  // Initializes the device for this thread and process and runs a test operation on it. Devices
  // other than the processor are set to compute reproducibly.
  // kConfig, listing the available devices, for an invalid name, for a device that this machine or
  // this LibTorch lacks, or one that cannot compute; kInfeasible if its memory is full; kInternal
  // if the test operation does not finish. `stall_timeout_s`: the stall timeout of waits for the
  // device.
  [[nodiscard]] static Result<ComputeDevice> open(const std::string& name,
                                                  double stall_timeout_s = kStallTimeout_s);

  static constexpr double kStallTimeout_s = 60;  // as comm.timeout_s

  [[nodiscard]] const DeviceKind& kind() const { return *kind_; }

  [[nodiscard]] c10::Device torch() const { return device_; }

  // Its name in cluster files.
  [[nodiscard]] std::string name() const { return device_name(*kind_, device_.index()); }

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
  ComputeDevice(const DeviceKind& kind, c10::Device device, double stall_timeout_s)
      : kind_(&kind), device_(device), stall_timeout_s_(stall_timeout_s) {}

  [[nodiscard]] Result<void> try_out() const;

  const DeviceKind* kind_ = find_device_kind("cpu");
  c10::Device device_{c10::kCPU};
  double stall_timeout_s_ = kStallTimeout_s;
};

// fp64 if the device supports it, else fp32.
[[nodiscard]] at::ScalarType exact_type(c10::Device device);
// Whether the host's memory is also the device's, so that copying between them saves no transfer.
[[nodiscard]] bool shares_host_memory(c10::Device device);

// The vendor's name of a device of this machine; "" if unknown, and for the processor.
[[nodiscard]] std::string device_model(const std::string& name);

// The names of the devices that can be opened here; the processor first.
[[nodiscard]] std::vector<std::string> local_devices();

}  // namespace motley

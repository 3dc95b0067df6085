// ComputeDevice: where a rank's tensors lie and its operations run, by the name that cluster files
// give it.
//
//   "cpu"               this process's own memory
//   "cuda:N"            LibTorch's library for it is opened when a job names one; no build needs it
//   "mps"               of a Mac
//   "privateuseone:N"   what a device library registers with LibTorch; the environment's
//                       MOTLEY_DEVICE_LIBRARY names its file
//
// All but the first go by c10's interfaces for devices in general, and nothing here knows more of
// one than these tell.
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

  // Makes the device ready for this thread and process, and has it compute a number; on any but the
  // processor it computes reproducibly (models/device/reproducible.h). kConfig for a name that
  // means none, or a device that this machine or this LibTorch does not have or that computes
  // nothing, with what there is; kInfeasible for one whose memory is full, kInternal for one that
  // does not finish the number. `patience_s`: the longest wait for it to finish what it was given.
  [[nodiscard]] static Result<ComputeDevice> open(const std::string& name,
                                                  double patience_s = kPatience_s);

  static constexpr double kPatience_s = 60;  // as comm.timeout_s

  [[nodiscard]] c10::Device torch() const { return device_; }

  [[nodiscard]] double patience_s() const { return patience_s_; }

  // Whether tensors on it are this process's memory.
  [[nodiscard]] bool is_host() const { return device_.is_cpu(); }

  // Returns when the device has done all that this thread gave it. Throws DeviceStandstill.
  void finish() const;

  // Of its own; nothing where it cannot be asked, and on the host.
  [[nodiscard]] std::optional<DeviceRoom> memory() const;

  // Makes it the one that this thread's operations run on, where a machine has several.
  void use_here() const;

 private:
  ComputeDevice(c10::Device device, double patience_s) : device_(device), patience_s_(patience_s) {}

  [[nodiscard]] Result<void> try_out(const std::string& name) const;

  c10::Device device_{c10::kCPU};
  double patience_s_ = kPatience_s;
};

// fp64 where the device has it, else fp32.
[[nodiscard]] at::ScalarType exact_type(c10::Device device);

// What one that is here is, as its maker calls it; "" where nobody tells, and of the processor.
[[nodiscard]] std::string device_model(const std::string& name);

// The devices that can be opened here, by name: the processor first.
[[nodiscard]] std::vector<std::string> devices_here();

}  // namespace motley

// DeviceCopies: copies between a device and the host's memory, on a stream of its own that overlaps
// computing if the device has several.
//
// Used by one thread, except Download::wait.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include "models/device/compute_device.h"
#include "models/device/device_event.h"

namespace motley {

class DeviceCopies {
 public:
  // REQUIRES: !device.is_host().
  explicit DeviceCopies(const ComputeDevice& device);
  // Waits briefly for copies under way. If the device does not finish them, their memory is leaked.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  [[nodiscard]] c10::Device device() const { return device_.torch(); }

  // Host memory for asynchronous copies; pinned if the device supports it.
  [[nodiscard]] at::Tensor staging(at::IntArrayRef sizes, at::ScalarType type = at::kFloat);

  // An operation on the device that runs on the copying stream. It must keep nothing except its
  // result, which is contiguous.
  using StagingCopy = std::function<at::Tensor(const at::Tensor& tensor)>;

  // A tensor on the device with the values of `host`, or with the result of `beside` for them, for
  // all work submitted from now on. Holds the host's memory until the copy is done; nothing may
  // write to it any more.
  [[nodiscard]] at::Tensor upload(at::Tensor host, const StagingCopy& beside = {});
  // The same into existing memory. When the event is done, `host` may be written to again.
  std::shared_ptr<const DeviceEvent> upload(at::Tensor host, at::Tensor& device);

  // A copy to the host under way.
  struct Download {
    at::Tensor host;  // readable after wait()
    std::shared_ptr<const DeviceEvent> done;
    double stall_timeout_s;  // the device's

    // Throws DeviceStall.
    void wait() const { done->wait(stall_timeout_s); }
  };

  // Copies the value that `tensor`, contiguous and on the device, has after all work submitted so
  // far. It must not change before the copy is done.
  [[nodiscard]] Download download(const at::Tensor& tensor);
  // The same into existing host memory.
  [[nodiscard]] Download download(const at::Tensor& tensor, at::Tensor host);
  // Copies the result of `beside` instead.
  [[nodiscard]] Download download(const at::Tensor& tensor, const StagingCopy& beside);

  // The stall timeout of waits for a copy.
  [[nodiscard]] double stall_timeout_s() const { return device_.stall_timeout_s(); }

 private:
  // Holds the memory of a copy under way.
  struct UnderWay {
    std::shared_ptr<const DeviceEvent> done;
    at::Tensor host;
    at::Tensor device;
  };

  [[nodiscard]] c10::Stream computing() const;
  std::shared_ptr<const DeviceEvent> keep(at::Tensor host, at::Tensor device);
  void forget_done();

  const ComputeDevice device_;
  c10::Stream copying_;
  bool has_pinned_ = true;
  std::deque<UnderWay> under_way_;
};

}  // namespace motley

// DeviceCopies: what goes between a device and the host's memory, on a stream of its own beside the
// computing where the device has several.
//
// Threads: one, but for Download::wait.
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
  // Waits a moment for what is under way. Of a device that does not end it the memory is kept for
  // ever.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  [[nodiscard]] c10::Device device() const { return device_.torch(); }

  // Memory of the host that copies go to and from beside the computing, where the device has such.
  [[nodiscard]] at::Tensor staging(at::IntArrayRef sizes, at::ScalarType type = at::kFloat);

  // What the device computes where its copies are made, beside the computing. Nothing of it may be
  // kept but what it returns, which is contiguous.
  using Beside = std::function<at::Tensor(const at::Tensor& tensor)>;

  // A tensor on the device with the values of `host`, or what `beside` makes of them, for what is
  // computed from now on. The host's memory is kept until the copy is done; nobody may write to it
  // any more.
  [[nodiscard]] at::Tensor upload(at::Tensor host, const Beside& beside = {});
  // The same into memory that is there already. When the event is
  // done, `host` may be written to again.
  std::shared_ptr<const DeviceEvent> upload(at::Tensor host, at::Tensor& device);

  // Values on their way to the host.
  struct Download {
    at::Tensor host;  // to be read after wait()
    std::shared_ptr<const DeviceEvent> done;
    double patience_s;  // the device's

    // Throws DeviceStandstill.
    void wait() const { done->wait(patience_s); }
  };

  // What `tensor`, contiguous and on the device, holds once all that was given to the device so far
  // is computed. Nobody may change it before that is read.
  [[nodiscard]] Download download(const at::Tensor& tensor);
  // The same into memory of the host that is there already.
  [[nodiscard]] Download download(const at::Tensor& tensor, at::Tensor host);
  // What `beside` makes of it.
  [[nodiscard]] Download download(const at::Tensor& tensor, const Beside& beside);

  // The longest that anybody waits for one of these.
  [[nodiscard]] double patience_s() const { return device_.patience_s(); }

 private:
  // A copy under way keeps what it reads and writes.
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

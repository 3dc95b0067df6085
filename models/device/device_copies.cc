#include "models/device/device_copies.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/check.h"

namespace motley {
namespace {

c10::Stream copy_stream(const c10::Device& device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  try {
    return guard.getStreamFromGlobalPool(device);
  } catch (const std::exception&) {
    return guard.getStream(device);  // the device has only this stream
  }
}

}  // namespace

DeviceCopies::DeviceCopies(const ComputeDevice& device)
    : device_(device), copying_(copy_stream(device.torch())) {
  MOTLEY_CHECK(!device.is_host(), "nothing is copied between the host and itself");
}

DeviceCopies::~DeviceCopies() {
  constexpr double kStallTimeout_s = 0.1;  // callers that needed a copy have already waited for it
  try {
    for (const UnderWay& copy : under_way_)
      copy.done->wait(std::min(kStallTimeout_s, stall_timeout_s()));
  } catch (const std::exception&) {
    new std::deque<UnderWay>(std::move(under_way_));  // leaked: the device may still write to it
  }
}

at::Tensor DeviceCopies::staging(at::IntArrayRef sizes, at::ScalarType type) {
  const auto options = at::TensorOptions(at::kCPU).dtype(type);
  if (has_pinned_) {
    try {
      return at::empty(sizes, options.pinned_memory(true));
    } catch (const std::exception&) {
      has_pinned_ = false;
    }
  }
  return at::empty(sizes, options);
}

at::Tensor DeviceCopies::upload(at::Tensor host, const StagingCopy& beside) {
  const c10::impl::VirtualGuardImpl guard(device_.torch().type());
  const c10::Stream computes = computing();
  at::Tensor there;
  {
    // Allocated on the copying stream: memory of the computing stream may still be used by its
    // pending work.
    const c10::StreamGuard on_copying(copying_);
    there = at::empty(host.sizes(), host.options().device(device_.torch()).pinned_memory(false));
    there.copy_(host, /*non_blocking=*/true);
    if (beside) there = beside(there);
  }
  keep(std::move(host), {})->block_stream(computes);
  guard.recordDataPtrOnStream(there.storage().data_ptr(), computes);
  return there;
}

std::shared_ptr<const DeviceEvent> DeviceCopies::upload(at::Tensor host, at::Tensor& device) {
  const c10::Stream computes = computing();
  DeviceEvent(computes).block_stream(copying_);
  {
    const c10::StreamGuard on_copying(copying_);
    device.copy_(host, /*non_blocking=*/true);
  }
  auto done = keep(std::move(host), device);
  done->block_stream(computes);
  return done;
}

DeviceCopies::Download DeviceCopies::download(const at::Tensor& tensor) {
  return download(tensor, staging(tensor.sizes(), tensor.scalar_type()));
}

DeviceCopies::Download DeviceCopies::download(const at::Tensor& tensor, at::Tensor host) {
  DeviceEvent(computing()).block_stream(copying_);
  {
    const c10::StreamGuard on_copying(copying_);
    host.copy_(tensor, /*non_blocking=*/true);
  }
  auto done = keep(host, tensor);
  return {std::move(host), std::move(done), stall_timeout_s()};
}

DeviceCopies::Download DeviceCopies::download(const at::Tensor& tensor, const StagingCopy& beside) {
  DeviceEvent(computing()).block_stream(copying_);
  at::Tensor host;
  {
    const c10::StreamGuard on_copying(copying_);
    const at::Tensor made = beside(tensor);
    host = staging(made.sizes(), made.scalar_type());
    host.copy_(made, /*non_blocking=*/true);
  }
  auto done = keep(host, tensor);
  return {std::move(host), std::move(done), stall_timeout_s()};
}

c10::Stream DeviceCopies::computing() const {
  return c10::impl::VirtualGuardImpl(device_.torch().type()).getStream(device_.torch());
}

std::shared_ptr<const DeviceEvent> DeviceCopies::keep(at::Tensor host, at::Tensor device) {
  forget_done();
  auto done = std::make_shared<const DeviceEvent>(copying_);
  under_way_.push_back({done, std::move(host), std::move(device)});
  return done;
}

void DeviceCopies::forget_done() {
  while (!under_way_.empty() && under_way_.front().done->is_done()) under_way_.pop_front();
}

}  // namespace motley

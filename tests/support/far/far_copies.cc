// Copies between the host and far devices, and between far devices.
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include "tests/support/far/far_state.h"
#include "tests/support/far/here.h"
#include "tests/support/far/host_views.h"

namespace motley::far {
namespace {

constexpr const char* kName = "aten::copy_";

bool is_far(const at::Tensor& tensor) {
  return tensor.device().type() == c10::DeviceType::PrivateUse1;
}

// A copy between two devices: the streams of both wait for each other before and after it.
void join_streams(StreamNumber one, StreamNumber other) {
  FarState& state = FarState::get();
  state.block_stream(one, state.mark(other));
  state.block_stream(other, state.mark(one));
}

void copy_on_devices(const at::Tensor& source, const at::Tensor& target) {
  const StreamNumber from = current_stream(device_index(source.device()));
  const StreamNumber to = current_stream(device_index(target.device()));
  HostViews of_source(kName);
  HostViews of_target(kName);
  const at::Tensor read = of_source.of(source, Use::kReads);
  const at::Tensor written = of_target.of(target, Use::kWrites);
  join_streams(from, to);
  FarState::get().begin(to, kName, {of_source.touches().front(), of_target.touches().front()});
  join_streams(from, to);
  written.copy_(read);
}

void copy_with_host(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  const bool to_device = is_far(target);
  const at::Tensor& far = to_device ? target : source;
  HostViews views(kName);
  const at::Tensor view = views.of(far, to_device ? Use::kWrites : Use::kReads);
  const Touch& touch = views.touches().front();
  LateCopy copy;
  copy.to_device = to_device;
  copy.source = to_device ? source : view;
  copy.target = to_device ? view : target;
  copy.host = range_of(to_device ? source : target);
  if (non_blocking) {
    FarState::get().give(views.stream(), std::move(copy), touch);
    return;
  }
  FarState::get().begin_copy(views.stream(), to_device, copy.host, touch);
  copy.target.copy_(copy.source);
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  const at::AutoDispatchBelowADInplaceOrView only_bytes;
  if (target.numel() == 0) return target;
  const at::Tensor values =
      source.sizes() == target.sizes() ? source : source.expand(target.sizes());
  if (is_far(values) && is_far(target)) {
    copy_on_devices(values, target);
  } else {
    copy_with_host(values, target, non_blocking);
  }
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  if (source.sizes() != target.sizes()) target.resize_(source.sizes());
  return copy_from(source, target, /*non_blocking=*/false);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
}

}  // namespace
}  // namespace motley::far

#include "tests/support/far/host_views.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>

#include "tests/support/far/far_allocator.h"
#include "tests/support/far/here.h"

namespace motley::far {
namespace {

void shape_like(c10::TensorImpl& tensor, const at::Tensor& model) {
  tensor.set_storage_offset(model.storage_offset());
  tensor.set_sizes_and_strides(model.sizes(), model.strides());
}

c10::DataPtr borrowed(void* hidden) {
  return {hidden, c10::Device(c10::kCPU)};
}

}  // namespace

StreamNumber HostViews::stream() const {
  return current_stream(*device_);
}

void HostViews::set_device(int device) {
  TORCH_CHECK(!device_.has_value() || *device_ == device,
              "Expected all tensors to be on the same device, but ", operation_,
              " got some of privateuseone:", *device_, " and of privateuseone:", device);
  device_ = device;
}

at::Tensor HostViews::of(const at::Tensor& argument, Use use) {
  if (!argument.defined()) return argument;
  if (argument.device().type() != c10::DeviceType::PrivateUse1) {
    TORCH_CHECK(argument.dim() == 0 && use != Use::kWrites,
                "Expected all tensors to be on the same device, but ", operation_, " got one of ",
                argument.device(), " beside those of the far device");
    return argument;
  }
  set_device(device_index(argument.device()));
  if (use != Use::kShape) touches_.push_back({range_of(argument), use == Use::kWrites});
  Pair& pair = pair_of(argument);
  pair.written = pair.written || use == Use::kWrites;
  return pair.host;
}

HostViews::Storages& HostViews::storages_of(const at::Tensor& far) {
  TORCH_CHECK(far.has_storage(), operation_, " got a tensor without memory");
  const c10::Storage& storage = far.storage();
  for (Storages& known : storages_) {
    if (known.far.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return known;
  }
  void* const shown = storage.data_ptr().get();
  void* const hidden = shown == nullptr ? nullptr : FarState::get().hidden(shown);
  // The processor may grow it, into memory of its own.
  c10::Storage host(c10::Storage::use_byte_size_t(), storage.nbytes(), borrowed(hidden),
                    c10::GetCPUAllocator(), /*resizable=*/true);
  storages_.push_back({storage, std::move(host), hidden});
  return storages_.back();
}

HostViews::Pair& HostViews::pair_of(const at::Tensor& far) {
  for (Pair& known : pairs_) {
    if (known.far.is_same(far)) return known;
  }
  at::Tensor host = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storages_of(far).host), c10::DispatchKeySet(c10::DispatchKey::CPU), far.dtype());
  shape_like(*host.unsafeGetTensorImpl(), far);
  if (far.unsafeGetTensorImpl()->is_wrapped_number()) {
    host.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  pairs_.push_back({far, std::move(host)});
  return pairs_.back();
}

at::Tensor HostViews::back(const at::Tensor& result) {
  if (!result.defined()) return result;
  for (const Pair& pair : pairs_) {
    if (pair.host.is_same(result)) return pair.far;
  }
  TORCH_CHECK(result.has_storage(), operation_, " makes a tensor without memory");
  for (const Pair& pair : pairs_) {
    if (pair.host.is_alias_of(result)) return view_of(pair, result);
  }
  return has_device() ? copied(result) : result;
}

at::Tensor HostViews::view_of(const Pair& base, const at::Tensor& result) const {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(base.far.storage()), base.far.key_set(), result.dtype());
  shape_like(*view.unsafeGetTensorImpl(), result);
  return view;
}

at::Tensor HostViews::copied(const at::Tensor& result) {
  const c10::DeviceGuard on(torch_device(*device_));
  const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  at::Tensor far =
      result.is_non_overlapping_and_dense()
          ? at::detail::empty_strided_generic(result.sizes(), result.strides(), far_allocator(),
                                              keys, result.scalar_type())
          : at::detail::empty_generic(result.sizes(), far_allocator(), keys, result.scalar_type(),
                                      {});
  if (result.numel() > 0) {
    FarState::get().made(stream(), operation_, range_of(far));
    pair_of(far).host.copy_(result);
  }
  return far;
}

void HostViews::carry_changes_back() {
  for (const Pair& pair : pairs_) {
    if (pair.written) carry_back(pair);
  }
}

void HostViews::carry_back(const Pair& pair) {
  c10::TensorImpl& far = *pair.far.unsafeGetTensorImpl();
  // Only set_() assigns the storage of another tensor.
  const auto storages =
      std::find_if(storages_.begin(), storages_.end(), [&](const Storages& known) {
        return known.host.unsafeGetStorageImpl() == pair.host.storage().unsafeGetStorageImpl();
      });
  TORCH_CHECK(storages != storages_.end(), operation_, " gives a tensor memory of the processor");
  if (storages->host.data_ptr().get() != storages->hidden) move_storage(*storages);
  if (storages->far.unsafeGetStorageImpl() != far.storage().unsafeGetStorageImpl()) {
    far.set_storage_keep_dtype(storages->far);
  }
  if (pair.far.sizes() != pair.host.sizes() || pair.far.strides() != pair.host.strides() ||
      pair.far.storage_offset() != pair.host.storage_offset()) {
    shape_like(far, pair.host);
  }
}

void HostViews::move_storage(Storages& storages) {
  const c10::DeviceGuard on(torch_device(*device_));
  const std::size_t bytes = storages.host.nbytes();
  c10::DataPtr memory = far_allocator()->allocate(bytes);
  char* const shown = static_cast<char*>(memory.get());
  void* const grown = storages.host.data_ptr().get();
  storages.hidden = grown;
  if (bytes > 0) {
    FarState::get().made(stream(), operation_, {shown, shown + bytes});
    std::memcpy(FarState::get().hidden(shown), grown, bytes);
  }
  storages.far.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
  storages.far.set_nbytes(bytes);
}

}  // namespace motley::far

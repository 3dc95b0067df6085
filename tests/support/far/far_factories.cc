// The operations that the far device implements itself: new tensors, and tensors of a storage.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "tests/support/far/far_allocator.h"
#include "tests/support/far/far_state.h"
#include "tests/support/far/here.h"
#include "tests/support/far/torch_versions.h"

namespace motley::far {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device device_for(const Optional<c10::Device>& asked) {
  return torch_device(asked.has_value() ? device_index(*asked) : current_device());
}

void check_options(const Optional<c10::Layout>& layout, const Optional<bool>& pinned) {
  TORCH_CHECK(layout.value_or(c10::kStrided) == c10::kStrided, "far tensors are strided");
  TORCH_CHECK(!pinned.value_or(false), "only memory of the host can be pinned");
}

at::Tensor empty(at::IntArrayRef sizes,
                 Optional<at::ScalarType> type,
                 Optional<c10::Layout> layout,
                 Optional<c10::Device> device,
                 Optional<bool> pinned,
                 Optional<c10::MemoryFormat> format) {
  check_options(layout, pinned);
  const c10::DeviceGuard on(device_for(device));
  return at::detail::empty_generic(sizes, far_allocator(), kKeys,
                                   type.value_or(c10::get_default_dtype_as_scalartype()), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes,
                         at::IntArrayRef strides,
                         Optional<at::ScalarType> type,
                         Optional<c10::Layout> layout,
                         Optional<c10::Device> device,
                         Optional<bool> pinned) {
  check_options(layout, pinned);
  const c10::DeviceGuard on(device_for(device));
  return at::detail::empty_strided_generic(sizes, strides, far_allocator(), kKeys,
                                           type.value_or(c10::get_default_dtype_as_scalartype()));
}

at::Tensor& set_storage_part(at::Tensor& tensor,
                             at::Storage storage,
                             std::int64_t offset,
                             at::IntArrayRef sizes,
                             at::IntArrayRef strides) {
  TORCH_CHECK(storage.device().type() == c10::DeviceType::PrivateUse1,
              "a far tensor is set to memory of ", storage.device());
  c10::TensorImpl& far = *tensor.unsafeGetTensorImpl();
  far.set_storage_keep_dtype(std::move(storage));
  far.set_storage_offset(offset);
  if (strides.size() == sizes.size()) {
    far.set_sizes_and_strides(sizes, strides);
  } else {
    far.set_sizes_contiguous(sizes);
  }
  return tensor;
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage) {
  const auto count = static_cast<std::int64_t>(storage.nbytes() / tensor.dtype().itemsize());
  return set_storage_part(tensor, std::move(storage), 0, {count}, {});
}

void record_stream(at::Tensor& tensor, c10::Stream stream) {
  FarState::get().record_use(tensor.storage().data_ptr().get(), stream_number_of(stream));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("set_.source_Storage_storage_offset", &set_storage_part);
  library.impl("record_stream", &record_stream);
}

}  // namespace
}  // namespace motley::far

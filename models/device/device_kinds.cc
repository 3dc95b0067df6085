#include "models/device/device_kinds.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/device/cuda_questions.h"
#include "models/device/library_questions.h"

namespace motley {
namespace {

constexpr DeviceKind kKinds[] = {
    {.name = "cuda",
     .type = c10::DeviceType::CUDA,
     .remedy = "build with a LibTorch for CUDA (-DMOTLEY_TORCH=python where PyTorch has it), and "
               "see that `nvidia-smi` lists the card",
     .open_library = open_cuda_library,
     .memory = cuda_memory,
     .computes_products_in = cuda_computes_products_in},
    {.name = "mps",
     .type = c10::DeviceType::MPS,
     .is_numbered = false,
     .remedy = "only a Mac has it: use \"cpu\" or \"cuda:0\" here",
     .computes_products_in = [](int /*index*/, at::ScalarType type) { return type == at::kHalf; }},
    {.name = "privateuseone",
     .type = c10::DeviceType::PrivateUse1,
     .remedy = "set MOTLEY_DEVICE_LIBRARY to the file of the device's library for LibTorch",
     .open_library = open_device_library,
     .memory = device_library_memory,
     .computes_products_in = device_library_computes_products_in},
};

}  // namespace

std::span<const DeviceKind> device_kinds() {
  return kKinds;
}

const DeviceKind* device_kind_of(std::string_view device) {
  const std::string_view name = device.substr(0, device.find(':'));
  const auto* const kind = std::ranges::find(kKinds, name, &DeviceKind::name);
  return kind == std::end(kKinds) ? nullptr : kind;
}

const DeviceKind* device_kind_of(c10::DeviceType type) {
  const auto* const kind = std::ranges::find(kKinds, type, &DeviceKind::type);
  return kind == std::end(kKinds) ? nullptr : kind;
}

DeviceCount count_devices(const DeviceKind& kind) {
  try {
    if (kind.open_library != nullptr) {
      if (auto trouble = kind.open_library()) return {.why = std::move(*trouble)};
    }
    if (!c10::impl::hasDeviceGuardImpl(kind.type)) {
      return {.why = "this LibTorch has no such kind of device"};
    }
    const int count = c10::impl::VirtualGuardImpl(kind.type).deviceCount();
    if (count == 0) return {.why = "the system shows none"};
    return {.count = count};
  } catch (const std::exception& thrown) {
    const std::string_view said = thrown.what();
    return {.why = std::string(said.substr(0, said.find('\n')))};
  }
}

}  // namespace motley

#include "models/device/kinds/device_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/device/kinds/cuda_queries.h"
#include "models/device/kinds/library_exception.h"
#include "models/device/kinds/library_queries.h"

namespace motley {
namespace {

constexpr DeviceKind kKinds[] = {
    {.name = "cuda",
     .type = c10::DeviceType::CUDA,
     .remedy = "check that `nvidia-smi` lists the GPU",
     .open_library = open_cuda_library,
     .unavailable = cuda_unavailable,
     .problem = cuda_problem,
     .memory = cuda_memory_info,
     .computes_products_in = cuda_computes_products_in,
     .model = cuda_card_name,
     .capability = cuda_capability_text,
     .driver = cuda_driver_text,
     .build = cuda_build_text},
    {.name = "mps",
     .type = c10::DeviceType::MPS,
     .is_numbered = false,
     .remedy = "only Macs have it, which Motley does not support yet: leave it out",
     .computes_products_in = [](int /*index*/, at::ScalarType type) { return type == at::kHalf; }},
    {.name = "privateuseone",
     .type = c10::DeviceType::PrivateUse1,
     .remedy = "check that the library has a device on this machine",
     .open_library = open_device_library,
     .unavailable = device_library_unavailable,
     .memory = device_library_memory_info,
     .computes_products_in = device_library_computes_products_in,
     .model = device_library_model},
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

std::string device_name(const DeviceKind& kind, int index) {
  return kind.is_numbered ? fmt::format("{}:{}", kind.name, index) : std::string(kind.name);
}

DeviceCount count_devices(const DeviceKind& kind) {
  try {
    std::string problem;
    if (kind.open_library != nullptr) problem = kind.open_library().value_or("");
    if (problem.empty() && !c10::impl::hasDeviceGuardImpl(kind.type)) {
      return {.unavailable = {"this LibTorch does not support this kind of device", kind.remedy}};
    }
    if (problem.empty()) {
      const int count = c10::impl::VirtualGuardImpl(kind.type).deviceCount();
      if (count > 0) return {.count = count};
    }
    if (kind.unavailable != nullptr) return {.unavailable = kind.unavailable(problem)};
    return {.unavailable = {problem.empty() ? "the system has none" : problem, kind.remedy}};
  } catch (const std::exception& thrown) {
    return {.unavailable = {first_line_of(thrown), kind.remedy}};
  }
}

}  // namespace motley

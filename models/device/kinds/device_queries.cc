#include "models/device/kinds/device_queries.h"

#include <exception>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/device/kinds/cuda_queries.h"
#include "models/device/kinds/library_exception.h"
#include "models/device/kinds/library_queries.h"

namespace motley {
namespace {

constexpr DeviceQueries kNone;
constexpr DeviceQueries kOfCuda{.open_library = open_cuda_library,
                                .unavailable = cuda_unavailable,
                                .problem = cuda_problem,
                                .memory = cuda_memory_info,
                                .computes_products_in = cuda_computes_products_in,
                                .model = cuda_card_name,
                                .capability = cuda_capability_text,
                                .driver = cuda_driver_text,
                                .build = cuda_build_text};
constexpr DeviceQueries kOfNamedLibrary{.open_library = open_device_library,
                                        .unavailable = device_library_unavailable,
                                        .memory = device_library_memory_info,
                                        .computes_products_in = device_library_computes_products_in,
                                        .model = device_library_model};

std::string remedy_of(const DeviceKind& kind) {
  return std::string(kind.remedy);
}

}  // namespace

const DeviceQueries& queries_of(DeviceLibrary library) {
  switch (library) {
    case DeviceLibrary::kTorch:
      return kNone;
    case DeviceLibrary::kCuda:
      return kOfCuda;
    case DeviceLibrary::kNamed:
      return kOfNamedLibrary;
  }
  return kNone;
}

std::optional<c10::DeviceType> torch_type_of(const DeviceKind& kind) {
  try {
    return c10::Device(std::string(kind.torch_type)).type();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

const DeviceKind* find_device_kind(c10::DeviceType type) {
  // [kind]; layers ask in every step.
  static const std::vector<std::optional<c10::DeviceType>> types = [] {
    std::vector<std::optional<c10::DeviceType>> all;
    for (const DeviceKind& kind : device_kinds()) all.push_back(torch_type_of(kind));
    return all;
  }();
  for (std::size_t k = 0; k < types.size(); ++k) {
    if (types[k] == type) return &device_kinds()[k];
  }
  return nullptr;
}

DeviceCount count_devices(const DeviceKind& kind) {
  const DeviceQueries& queries = queries_of(kind.library);
  try {
    std::string problem;
    if (queries.open_library != nullptr) problem = queries.open_library().value_or("");
    const auto type = torch_type_of(kind);
    if (problem.empty() && !(type && c10::impl::hasDeviceGuardImpl(*type))) {
      return {
          .unavailable = {"this LibTorch does not support this kind of device", remedy_of(kind)}};
    }
    if (problem.empty()) {
      const int count = c10::impl::VirtualGuardImpl(*type).deviceCount();
      if (count > 0) return {.count = count};
    }
    if (queries.unavailable != nullptr) return {.unavailable = queries.unavailable(problem)};
    return {.unavailable = {problem.empty() ? "the system has none" : problem, remedy_of(kind)}};
  } catch (const std::exception& thrown) {
    return {.unavailable = {first_line_of(thrown), remedy_of(kind)}};
  }
}

}  // namespace motley

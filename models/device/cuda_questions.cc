#include "models/device/cuda_questions.h"

#include <dlfcn.h>

#include <cstddef>

#include "models/device/library_symbol.h"

namespace motley {
namespace {

// Numbers of cudaDeviceAttr.
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

std::optional<int> attribute_of(int index, int attribute) {
  auto* const ask = library_symbol<int(int*, int, int)>("cudaDeviceGetAttribute");
  int value = 0;
  if (ask == nullptr || ask(&value, attribute, index) != 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> open_cuda_library() {
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return std::nullopt;
  return std::string(::dlerror());
}

std::optional<DeviceRoom> cuda_memory() {
  auto* const ask = library_symbol<int(std::size_t*, std::size_t*)>("cudaMemGetInfo");
  std::size_t free = 0;
  std::size_t total = 0;
  if (ask == nullptr || ask(&free, &total) != 0) return std::nullopt;
  return DeviceRoom{static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

std::optional<ComputeCapability> cuda_capability(int index) {
  const auto major = attribute_of(index, kCapabilityMajor);
  const auto minor = attribute_of(index, kCapabilityMinor);
  if (!major || !minor) return std::nullopt;
  return ComputeCapability{*major, *minor};
}

bool cuda_computes_products_in(int index, at::ScalarType type) {
  const auto capability = cuda_capability(index);
  return capability && computes_products_in(*capability, type);
}

bool computes_products_in(const ComputeCapability& capability, at::ScalarType type) {
  if (type == at::kHalf) return capability >= ComputeCapability{7, 0};
  return type == at::kBFloat16 && capability >= ComputeCapability{8, 0};
}

}  // namespace motley

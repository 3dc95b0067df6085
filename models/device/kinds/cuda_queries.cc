#include "models/device/kinds/cuda_queries.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <exception>

#include <ATen/Version.h>

#include "models/device/kinds/library_symbol.h"
#include "models/device/kinds/visible_gpus.h"

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

// 0 = unknown; for a driver also: there is none.
int version_of(const char* question) {
  auto* const ask = library_symbol<int(int*)>(question);
  int version = 0;
  return ask != nullptr && ask(&version) == 0 ? version : 0;
}

std::string version_words(int version) {
  return version == 0 ? "" : fmt::format("for CUDA {}", cuda_version_text(version));
}

}  // namespace

std::optional<std::string> open_cuda_library() {
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return std::nullopt;
  return std::string(::dlerror());
}

CudaFacts query_cuda(const std::string& library_problem) {
  return {.library_problem = library_problem,
          .runtime = version_of("cudaRuntimeGetVersion"),
          .driver = version_of("cudaDriverGetVersion"),
          .visible_gpus = visible_nvidia_gpus(),
          .are_hidden = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr,
          .has_amd_gpu = ::access("/dev/kfd", F_OK) == 0};
}

std::optional<DeviceMemoryInfo> cuda_memory_info() {
  return query_memory_info("cudaMemGetInfo");
}

std::optional<ComputeCapability> cuda_capability(int index) {
  const auto major = attribute_of(index, kCapabilityMajor);
  const auto minor = attribute_of(index, kCapabilityMinor);
  if (!major || !minor) return std::nullopt;
  return ComputeCapability{*major, *minor};
}

std::string cuda_capability_text(int index) {
  const auto capability = cuda_capability(index);
  return capability ? to_text(*capability) : "";
}

std::string cuda_card_name(int index) {
  // The driver's library, which the runtime has opened.
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return "";
  using Question = int (*)(char*, int, int);
  const auto ask = reinterpret_cast<Question>(::dlsym(driver, "cuDeviceGetName"));  // NOLINT
  std::array<char, 256> name{};
  const bool is_known = ask != nullptr && ask(name.data(), name.size() - 1, index) == 0;
  ::dlclose(driver);
  return is_known ? name.data() : "";
}

std::string cuda_driver_text() {
  return version_words(version_of("cudaDriverGetVersion"));
}

std::string cuda_build_text() {
  return version_words(version_of("cudaRuntimeGetVersion"));
}

DeviceProblem cuda_unavailable(const std::string& library_problem) {
  return no_card_problem(query_cuda(library_problem));
}

std::optional<DeviceProblem> cuda_problem(int index) {
  const auto capability = cuda_capability(index);
  if (!capability) return std::nullopt;
  try {
    return card_problem(*capability, cuda_kernels(at::show_config()));
  } catch (const std::exception&) {
    return std::nullopt;  // this build does not report it
  }
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

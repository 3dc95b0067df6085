#include "models/device/kinds/library_queries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "models/device/kinds/dtype_name.h"
#include "models/device/kinds/library_file.h"
#include "models/device/kinds/library_symbol.h"
#include "plan/device_kinds.h"

namespace motley {
namespace {

std::string words_of(const char* question, int index) {
  auto* const ask = library_symbol<const char*(int)>(question);
  const char* const words = ask == nullptr ? nullptr : ask(index);
  return words == nullptr ? "" : words;
}

}  // namespace

std::optional<std::string> open_device_library() {
  const char* const file = std::getenv(kDeviceLibraryVariable);
  if (file == nullptr || *file == '\0') {
    return fmt::format("{} is {}", kDeviceLibraryVariable, file == nullptr ? "not set" : "empty");
  }
  std::error_code unknown;  // the loader also searches its default paths
  const auto status = std::filesystem::status(file, unknown);
  // For a named pipe the loader would wait for a writer.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return fmt::format("{} is not a file", file);
  }
  if (is_truncated(file)) {
    return fmt::format("{}: file too short: it ends before the end declared in its headers", file);
  }
  if (::dlopen(file, RTLD_NOW | RTLD_GLOBAL) == nullptr) return std::string(::dlerror());
  if (c10::impl::hasDeviceGuardImpl(c10::DeviceType::PrivateUse1)) return std::nullopt;
  return fmt::format("{} registers no device with LibTorch", file);
}

DeviceProblem device_library_unavailable(const std::string& problem) {
  // If the user names a library, its device is wanted.
  const bool is_named = std::getenv(kDeviceLibraryVariable) != nullptr;
  return {problem.empty() ? "the library has none" : problem,
          fmt::format("set {} to the LibTorch library of the device", kDeviceLibraryVariable),
          is_named};
}

std::optional<DeviceMemoryInfo> device_library_memory_info() {
  return query_memory_info("motley_device_memory");
}

bool device_library_computes_products_in(int index, at::ScalarType type) {
  return names_dtype(words_of("motley_device_types", index), type);
}

std::string device_library_model(int index) {
  return words_of("motley_device_model", index);
}

}  // namespace motley

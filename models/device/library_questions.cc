#include "models/device/library_questions.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <sstream>

#include "models/device/library_symbol.h"
#include "models/device/number_types.h"

namespace motley {
namespace {

constexpr const char* kVariable = "MOTLEY_DEVICE_LIBRARY";

}  // namespace

std::optional<std::string> open_device_library() {
  const char* const file = std::getenv(kVariable);
  if (file == nullptr) return fmt::format("{} is not set", kVariable);
  if (::dlopen(file, RTLD_NOW | RTLD_GLOBAL) != nullptr) return std::nullopt;
  return std::string(::dlerror());
}

std::optional<DeviceRoom> device_library_memory() {
  auto* const ask = library_symbol<int(std::size_t*, std::size_t*)>("motley_device_memory");
  std::size_t free = 0;
  std::size_t total = 0;
  if (ask == nullptr || ask(&free, &total) != 0) return std::nullopt;
  return DeviceRoom{static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

bool device_library_computes_products_in(int index, at::ScalarType type) {
  auto* const ask = library_symbol<const char*(int)>("motley_device_types");
  const char* const types = ask == nullptr ? nullptr : ask(index);
  if (types == nullptr) return false;
  std::istringstream words(types);
  for (std::string word; words >> word;) {
    if (word == number_type_name(type)) return true;
  }
  return false;
}

}  // namespace motley

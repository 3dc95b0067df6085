#include "base/system/program_path.h"

#include <cstdint>
#include <string>
#include <system_error>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace motley {

std::filesystem::path program_path() {
  std::error_code code;
#ifdef __APPLE__
  std::string name(4096, '\0');
  auto length = static_cast<std::uint32_t>(name.size());
  if (_NSGetExecutablePath(name.data(), &length) != 0) return {};
  const auto path = std::filesystem::canonical(name.c_str(), code);
#else
  const auto path = std::filesystem::read_symlink("/proc/self/exe", code);
#endif
  return code ? std::filesystem::path() : path;
}

}  // namespace motley

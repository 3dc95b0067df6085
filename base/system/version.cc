#include "base/system/version.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/system/files.h"

#ifndef MOTLEY_VERSION
#error "MOTLEY_VERSION comes from the build"
#endif

namespace motley {

std::string motley_version() {
  return MOTLEY_VERSION;
}

std::string build_of(const std::filesystem::path& program) {
  constexpr std::size_t kProgramBytesMax = std::size_t{1} << 30;
  const auto bytes = read_file(program, kProgramBytesMax);
  return bytes.ok() ? fmt::format("{:016x}", hash64(*bytes)) : "";
}

}  // namespace motley

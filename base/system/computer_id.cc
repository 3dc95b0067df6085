#include "base/system/computer_id.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/system/files.h"

namespace motley {

std::string computer_id() {
  constexpr std::uint64_t kBytesMax = 256;
  const Result<std::string> boot = read_file("/proc/sys/kernel/random/boot_id", kBytesMax);
  if (!boot) return "";
  return boot->substr(0, boot->find('\n'));
}

// Hashed, since other programs rely on machine-id being known on this machine only.
std::string installation_id() {
  constexpr std::uint64_t kBytesMax = 256;
  constexpr std::size_t kDigits = 32;
  const Result<std::string> id = read_file("/etc/machine-id", kBytesMax);
  if (!id || id->find_first_not_of("0123456789abcdef") != kDigits) return "";
  return fmt::format("{:016x}", hash64("motley " + id->substr(0, kDigits)));
}

}  // namespace motley

#include "base/system/computer_id.h"

#include "base/system/files.h"

namespace motley {

std::string computer_id() {
  constexpr std::uint64_t kBytesMax = 256;
  const Result<std::string> boot = read_file("/proc/sys/kernel/random/boot_id", kBytesMax);
  if (!boot) return "";
  return boot->substr(0, boot->find('\n'));
}

}  // namespace motley

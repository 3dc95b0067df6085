#include "models/device/kinds/visible_gpus.h"

#include <fstream>
#include <string>
#include <system_error>

namespace motley {
namespace {

std::string first_word(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

}  // namespace

int visible_nvidia_gpus(const std::filesystem::path& top) {
  constexpr const char* kNvidia = "0x10de";
  constexpr const char* kDisplayClass = "0x03";  // includes cards without display output
  int count = 0;
  std::error_code ignored;
  for (const auto& device : std::filesystem::directory_iterator(top, ignored)) {
    if (first_word(device.path() / "vendor") != kNvidia) continue;
    if (first_word(device.path() / "class").starts_with(kDisplayClass)) ++count;
  }
  return count;
}

}  // namespace motley

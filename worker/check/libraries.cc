#include "worker/check/libraries.h"

#include <fmt/format.h>

#include <fstream>
#include <initializer_list>

#include <torch/version.h>

#include "base/system/blas_core.h"
#include "base/system/version.h"
#include "models/kernels/kernels.h"

namespace motley {
namespace {

// The file of the first of these libraries that this process has loaded; "" = none. The dynamic
// loader selects it when a program starts. Each line of the map ends with the file.
std::string loaded_file(std::initializer_list<const char*> libraries) {
  std::ifstream lines("/proc/self/maps");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t path = line.find('/');
    const std::size_t name = line.rfind('/');
    if (path == std::string::npos || line.find(".so", name) == std::string::npos) continue;
    for (const char* library : libraries) {
      if (line.find(library, name) != std::string::npos) return line.substr(path);
    }
  }
  return "";
}

}  // namespace

std::string loaded_blas() {
  const std::string file = loaded_file({"openblas", "libblas", "libmkl", "libblis"});
  const std::string core = blas_core();
  return core.empty() ? file : fmt::format("{}, for {}", file, core);
}

std::vector<std::string> computing_libraries() {
  return {fmt::format("Motley {}, kernels {}", motley_version(), kernels::kVersion),
          fmt::format("LibTorch {}", TORCH_VERSION), fmt::format("BLAS {}", loaded_blas()),
          fmt::format("oneDNN {}", loaded_file({"libdnnl"}))};
}

}  // namespace motley

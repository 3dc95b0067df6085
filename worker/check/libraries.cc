#include "worker/check/libraries.h"

#include <fmt/format.h>

#include <cstdlib>
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

std::string name_of(const std::string& file) {
  return file.substr(file.rfind('/') + 1);
}

const char* text_of(const VectorUnits& units) {
  if (units.bf16) return "AVX-512 with bf16";
  if (units.avx512) return "AVX-512";
  return units.avx2 ? "AVX2" : "no AVX2";
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

std::string processor_arithmetic() {
  std::string text =
      fmt::format("LibTorch {}, BLAS {}, oneDNN {}, {}", TORCH_VERSION, name_of(loaded_blas()),
                  name_of(loaded_file({"libdnnl"})), text_of(vector_units()));
  for (const char* limit : {"ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"}) {
    if (const char* value = std::getenv(limit)) text += fmt::format(", {}={}", limit, value);
  }
  return text;
}

}  // namespace motley

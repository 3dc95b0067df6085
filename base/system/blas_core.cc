#include "base/system/blas_core.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "base/system/program_path.h"

namespace motley {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

}  // namespace

VectorUnits vector_units() {
#if defined(__x86_64__)
  return {.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
          .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl"),
          .bf16 = static_cast<bool>(__builtin_cpu_supports("avx512bf16"))};
#else
  return {};
#endif
}

std::string blas_core() {
  using CoreName = char* (*)();
  const auto name =
      reinterpret_cast<CoreName>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));  // NOLINT
  return name == nullptr ? "" : name();
}

std::string better_blas_core(std::string_view taken, const VectorUnits& units) {
  if (taken != "Prescott" || !units.avx2) return "";
  if (!units.avx512) return "Haswell";
  return units.bf16 ? "Cooperlake" : "SkylakeX";
}

void restart_for_better_blas(char** argv) {
  if (std::getenv(kVariable) != nullptr) return;
  const std::string better = better_blas_core(blas_core(), vector_units());
  if (better.empty() || ::setenv(kVariable, better.c_str(), 1) != 0) return;
  // By the program's own path: with /proc/self/exe, process lists would show the name "exe".
  ::execv(program_path().c_str(), argv);
}

}  // namespace motley

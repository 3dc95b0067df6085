#include "models/device/kinds/cuda_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace motley {
namespace {

constexpr const char* kOtherLibTorch =
    "build with a LibTorch for CUDA: that of PyTorch's wheel (docs/portability.md; "
    "scripts/gpu-check does it), or Debian's libtorch-cuda-dev (contrib, untested)";

constexpr int major_of(int version) {
  return version / 1000;
}

// Since CUDA 11 a driver supports all libraries of its major version.
bool is_too_old(int driver, int runtime) {
  constexpr int kServesItsMajor = 11;
  if (major_of(runtime) < kServesItsMajor) return driver < runtime;
  return major_of(driver) < major_of(runtime);
}

std::string cards_text(int count) {
  return count == 1 ? "an NVIDIA GPU" : fmt::format("{} NVIDIA GPUs", count);
}

// If another library is missing, dlopen's message begins with that library's name.
bool lacks_another_library(std::string_view problem) {
  return problem.find("cannot open shared object file") != problem.npos &&
         !problem.starts_with("libtorch_cuda");
}

DeviceProblem why_library_is_closed(const CudaFacts& facts) {
  if (lacks_another_library(facts.library_problem)) {
    return {fmt::format("LibTorch's library for CUDA lacks another one: {}", facts.library_problem),
            "install the CUDA libraries that this LibTorch was built for", facts.visible_gpus > 0};
  }
  if (facts.visible_gpus == 0 && facts.has_amd_gpu) {
    return {
        "the system has an AMD GPU, which Motley does not use yet: it opens libtorch_cuda, and "
        "LibTorch for ROCm has libtorch_hip instead",
        "use \"cpu\"; docs/devices.md says what is known of AMD GPUs", true};
  }
  if (facts.visible_gpus == 0) {
    return {"the system has no NVIDIA GPU",
            "use \"cpu\"; if there is a GPU, check that `nvidia-smi` lists it"};
  }
  return {fmt::format("the system has {}, but this LibTorch is for processors ({})",
                      cards_text(facts.visible_gpus), facts.library_problem),
          kOtherLibTorch, true};
}

std::optional<ComputeCapability> read_capability(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return ComputeCapability{number / 10, number % 10};
}

}  // namespace

std::string to_text(const ComputeCapability& capability) {
  return fmt::format("{}.{}", capability.major, capability.minor);
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", major_of(version), version % 1000 / 10);
}

DeviceProblem no_card_problem(const CudaFacts& facts) {
  if (!facts.library_problem.empty()) return why_library_is_closed(facts);
  const std::string built = fmt::format("this LibTorch is for CUDA {}",
                                        facts.runtime == 0 ? "" : cuda_version_text(facts.runtime));
  const bool is_shown = facts.visible_gpus > 0;
  if (facts.driver == 0) {
    return {fmt::format("{}, but no NVIDIA driver is running{}", built,
                        is_shown ? fmt::format(" for {}", cards_text(facts.visible_gpus))
                                 : ", and the system has no GPU"),
            "install it (Debian: `apt-get install nvidia-driver`, non-free), reboot the machine, "
            "and check that `nvidia-smi` lists the GPU",
            is_shown};
  }
  if (is_too_old(facts.driver, facts.runtime)) {
    return {fmt::format("{}, but the driver supports at most CUDA {}", built,
                        cuda_version_text(facts.driver)),
            fmt::format("install a driver for CUDA {} or later, or use a LibTorch for CUDA {}",
                        major_of(facts.runtime), major_of(facts.driver)),
            is_shown};
  }
  if (facts.are_hidden) {
    return {"CUDA_VISIBLE_DEVICES hides every GPU",
            "unset the variable, or set it to the GPUs to use"};
  }
  return {fmt::format("{}, but its driver shows no GPU", built),
          "check that `nvidia-smi` lists the GPU, and that a container has access to it", is_shown};
}

CudaKernels cuda_kernels(std::string_view flags) {
  CudaKernels kernels;
  for (std::size_t at = 0; (at = flags.find("code=", at)) != flags.npos;) {
    at += std::string_view("code=").size();
    const std::string_view code = flags.substr(at, flags.find_first_of(";, \n]", at) - at);
    std::string_view digits = code.substr(std::min(code.size(), code.find('_') + 1));
    const bool is_exact = digits.ends_with('a');
    if (is_exact) digits.remove_suffix(1);
    const auto capability = read_capability(digits);
    if (!capability) continue;
    if (code.starts_with("compute_")) {
      kernels.translated.push_back(*capability);
    } else if (code.starts_with("sm_")) {
      (is_exact ? kernels.exactly_for : kernels.compiled).push_back(*capability);
    }
  }
  return kernels;
}

std::optional<DeviceProblem> card_problem(const ComputeCapability& capability,
                                          const CudaKernels& kernels) {
  if (kernels.compiled.empty() && kernels.translated.empty()) return std::nullopt;
  const bool runs = std::ranges::any_of(kernels.compiled, [&](const ComputeCapability& each) {
    return each.major == capability.major && each <= capability;
  });
  const bool is_translated = std::ranges::any_of(
      kernels.translated, [&](const ComputeCapability& each) { return each <= capability; });
  if (runs || is_translated || std::ranges::count(kernels.exactly_for, capability) > 0) {
    return std::nullopt;
  }
  std::vector<ComputeCapability> all = kernels.compiled;
  all.insert(all.end(), kernels.translated.begin(), kernels.translated.end());
  const bool is_older = capability < std::ranges::min(all);
  return DeviceProblem{
      fmt::format("its compute capability is {}, but this LibTorch has kernels for {} to {}",
                  to_text(capability), to_text(std::ranges::min(all)),
                  to_text(std::ranges::max(all))),
      is_older ? "use an older LibTorch with kernels for this GPU, or use \"cpu\""
               : "use a newer LibTorch with kernels for this GPU",
      true};
}

}  // namespace motley

#include "models/device/compute_device.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <optional>
#include <string_view>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/device/device_event.h"
#include "plan/cluster.h"

namespace motley {
namespace {

struct Kind {
  std::string_view name;
  c10::DeviceType type;
  const char* library;  // opened for it; nullptr = in LibTorch already
  // What is asked for its memory, with cudaMemGetInfo's arguments, since c10 has no question for it
  // in all versions; nullptr = it has none.
  const char* memory_question;
  const char* remedy;
};

constexpr const char* kLibraryVariable = "MOTLEY_DEVICE_LIBRARY";

constexpr Kind kKinds[] = {
    {"cuda", c10::DeviceType::CUDA, "libtorch_cuda.so", "cudaMemGetInfo",
     "build with a LibTorch for CUDA (-DMOTLEY_TORCH=python where PyTorch has it), and see that "
     "`nvidia-smi` lists the card"},
    {"mps", c10::DeviceType::MPS, nullptr, nullptr,
     "only a Mac has it: use \"cpu\" or \"cuda:0\" here"},
    {"privateuseone", c10::DeviceType::PrivateUse1, nullptr, "motley_device_memory",
     "set MOTLEY_DEVICE_LIBRARY to the file of the device's library for LibTorch"},
};

const Kind* kind_of(std::string_view name) {
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return &kind;
    if (name.starts_with(kind.name) && name[kind.name.size()] == ':') return &kind;
  }
  return nullptr;
}

// Opens what a kind of device needs; says why it could not. It stays open: it has registered
// itself.
std::optional<std::string> open_library(const Kind& kind) {
  const char* file = kind.library;
  if (kind.type == c10::DeviceType::PrivateUse1) {
    file = std::getenv(kLibraryVariable);
    if (file == nullptr) return fmt::format("{} is not set", kLibraryVariable);
  }
  if (file == nullptr) return std::nullopt;
  if (::dlopen(file, RTLD_NOW | RTLD_GLOBAL) != nullptr) return std::nullopt;
  return std::string(::dlerror());
}

// How many there are; says why none.
int count_of(const Kind& kind, std::string& why) {
  try {
    if (const auto trouble = open_library(kind)) {
      why = *trouble;
      return 0;
    }
    if (!c10::impl::hasDeviceGuardImpl(kind.type)) {
      why = "this LibTorch has no such kind of device";
      return 0;
    }
    const int count = c10::impl::VirtualGuardImpl(kind.type).deviceCount();
    if (count == 0) why = "the system shows none";
    return count;
  } catch (const std::exception& thrown) {
    const std::string_view said = thrown.what();
    why = said.substr(0, said.find('\n'));
    return 0;
  }
}

}  // namespace

Result<ComputeDevice> ComputeDevice::open(const std::string& name, double patience_s) {
  MOTLEY_TRY(check_device(name));
  if (name == "cpu") return ComputeDevice();
  const Kind* kind = kind_of(name);
  if (kind == nullptr) {
    return Error{ErrorCode::kInternal, fmt::format("'{}' computes nothing", name), "", ""};
  }
  std::string why;
  const int count = count_of(*kind, why);
  if (count == 0) {
    return Error{ErrorCode::kConfig, fmt::format("there is no device '{}' here", name), why,
                 kind->remedy};
  }
  const std::size_t colon = name.find(':');
  const int index = colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
  if (index >= count) {
    return Error{ErrorCode::kConfig, fmt::format("there is no device '{}' here", name),
                 fmt::format("this machine has {}", fmt::join(devices_here(), ", ")),
                 "name one of these in the cluster file"};
  }
  ComputeDevice device(c10::Device(kind->type, static_cast<c10::DeviceIndex>(index)), patience_s);
  device.use_here();
  return device;
}

void ComputeDevice::use_here() const {
  if (!is_host()) c10::impl::VirtualGuardImpl(device_.type()).setDevice(device_);
}

void ComputeDevice::finish() const {
  if (is_host()) return;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  DeviceEvent(guard.getStream(device_)).wait(patience_s_);
}

std::optional<ComputeDevice::Memory> ComputeDevice::memory() const {
  const auto* const kind =
      std::find_if(std::begin(kKinds), std::end(kKinds),
                   [&](const Kind& each) { return each.type == device_.type(); });
  if (kind == std::end(kKinds) || kind->memory_question == nullptr) return std::nullopt;
  using Question = int (*)(std::size_t*, std::size_t*);
  const auto ask = reinterpret_cast<Question>(::dlsym(RTLD_DEFAULT, kind->memory_question));
  std::size_t free = 0;
  std::size_t total = 0;
  use_here();
  if (ask == nullptr || ask(&free, &total) != 0) return std::nullopt;
  return Memory{static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

at::ScalarType exact_type(c10::Device device) {
  return device.type() == c10::DeviceType::MPS ? at::kFloat : at::kDouble;
}

std::vector<std::string> devices_here() {
  std::vector<std::string> names = {"cpu"};
  for (const Kind& kind : kKinds) {
    std::string why;
    const int count = count_of(kind, why);
    for (int index = 0; index < count; ++index) {
      names.push_back(kind.type == c10::DeviceType::MPS ? std::string(kind.name)
                                                        : fmt::format("{}:{}", kind.name, index));
    }
  }
  return names;
}

}  // namespace motley

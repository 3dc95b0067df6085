#include "plan/device_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

namespace motley {
namespace {

constexpr DeviceKind kKinds[] = {
    {.name = "cpu",
     .numbers = DeviceNumbers::kNone,
     .capabilities = {.has_own_memory = false, .leaves_processor_free = false},
     .spellings = {"cpu"},
     .torch_type = "cpu"},
    {.name = "cuda",
     .spellings = {"cud*", "gpu", "nvidia"},
     .remedy = "check that `nvidia-smi` lists the GPU",
     .torch_type = "cuda",
     .library = DeviceLibrary::kCuda},
    {.name = "mps",
     .numbers = DeviceNumbers::kNone,
     .spellings = {"mps", "metal"},
     .remedy = "only Macs have it, which Motley does not support yet: leave it out",
     .is_tried = false,
     .torch_type = "mps",
     .product_dtypes = "fp16",
     .has_fp64 = false,
     .has_unified_memory = true},
    {.name = "privateuseone",
     .remedy = "check that the library has a device on this machine",
     .is_announced = false,
     .torch_type = "privateuseone",
     .library = DeviceLibrary::kNamed},
    {.name = "virtual",
     .numbers = DeviceNumbers::kOptional,
     .capabilities =
         {.computes = false, .keeps_state = false, .is_measured = false, .has_own_memory = false},
     .label = "virtual"},
};

constexpr std::size_t kDigitsMax = 3;

// Leading zeros are rejected, so that a device has only one name.
bool is_number(std::string_view digits) {
  return !digits.empty() && digits.size() <= kDigitsMax &&
         (digits.size() == 1 || digits.front() != '0') &&
         std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_device_name(std::string_view device) {
  const DeviceKind* const kind = find_device_kind(device);
  if (kind == nullptr) return false;
  if (device == kind->name) return kind->numbers != DeviceNumbers::kRequired;
  return kind->numbers != DeviceNumbers::kNone && is_number(device.substr(kind->name.size() + 1));
}

bool is_spelled(const DeviceKind& kind, std::string_view word) {
  return std::ranges::any_of(kind.spellings, [&](std::string_view spelling) {
    if (!spelling.ends_with('*')) return !spelling.empty() && word == spelling;
    return word.starts_with(spelling.substr(0, spelling.size() - 1));
  });
}

// The device name that was probably meant; "" if none is close.
std::string device_meant_by(std::string_view device) {
  std::string small(device);
  std::ranges::transform(small, small.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (small == kAutomaticDevice || is_device_name(small)) return small;
  const std::string word = small.substr(0, small.find(':'));
  const auto* const kind =
      std::ranges::find_if(kKinds, [&](const DeviceKind& each) { return is_spelled(each, word); });
  if (kind == std::end(kKinds)) return "";
  return kind->numbers == DeviceNumbers::kRequired ? device_name(*kind, 0)
                                                   : std::string(kind->name);
}

// `"cpu", "mps", "cuda:0" to "cuda:999" compute, …`
std::string announced_devices() {
  std::vector<std::string> names;
  std::vector<std::string> numbered;
  std::string simulated;
  for (const DeviceKind& kind : kKinds) {
    if (!kind.is_announced) continue;
    if (!kind.capabilities.computes) {
      simulated += fmt::format(", \"{}\" simulates one", kind.name);
    } else if (kind.numbers == DeviceNumbers::kRequired) {
      numbered.push_back(fmt::format("\"{0}:0\" to \"{0}:999\"", kind.name));
    } else {
      names.push_back(fmt::format("\"{}\"", kind.name));
    }
  }
  std::ranges::move(numbered, std::back_inserter(names));
  return fmt::format("{} compute, \"{}\" selects all devices{}", fmt::join(names, ", "),
                     kAutomaticDevice, simulated);
}

}  // namespace

DeviceCapabilities operator&(const DeviceCapabilities& a, const DeviceCapabilities& b) {
  return {.computes = a.computes && b.computes,
          .keeps_state = a.keeps_state && b.keeps_state,
          .is_measured = a.is_measured && b.is_measured,
          .has_own_memory = a.has_own_memory && b.has_own_memory,
          .leaves_processor_free = a.leaves_processor_free && b.leaves_processor_free};
}

std::span<const DeviceKind> device_kinds() {
  return kKinds;
}

const DeviceKind* find_device_kind(std::string_view device) {
  const std::string_view name = device.substr(0, device.find(':'));
  const auto* const kind = std::ranges::find(kKinds, name, &DeviceKind::name);
  return kind == std::end(kKinds) ? nullptr : kind;
}

DeviceCapabilities capabilities_of(std::string_view device) {
  const DeviceKind* const kind = find_device_kind(device);
  return kind == nullptr ? DeviceCapabilities{} : kind->capabilities;
}

bool has_own_memory(std::string_view device) {
  return capabilities_of(device).has_own_memory;
}

bool leaves_processor_free(std::string_view device) {
  return capabilities_of(device).leaves_processor_free;
}

bool is_accelerator(const DeviceCapabilities& capabilities) {
  return capabilities.computes && capabilities.leaves_processor_free;
}

std::string_view label_of(std::string_view device) {
  const DeviceKind* const kind = find_device_kind(device);
  return kind == nullptr ? "" : kind->label;
}

bool is_untried_device(std::string_view device) {
  const DeviceKind* const kind = find_device_kind(device);
  return kind != nullptr && !kind->is_tried;
}

std::string device_name(const DeviceKind& kind, int index) {
  return kind.numbers == DeviceNumbers::kNone ? std::string(kind.name)
                                              : fmt::format("{}:{}", kind.name, index);
}

Result<void> check_device(const std::string& device) {
  if (is_device_name(device)) return {};
  const std::string meant = device_meant_by(device);
  return Error{
      ErrorCode::kConfig, fmt::format("unknown kind of device '{}'", excerpt(device)),
      announced_devices(),
      fmt::format("write {} in the cluster file; `motley devices` lists what a machine has",
                  meant.empty() ? "one of these" : fmt::format("\"{}\"", meant))};
}

}  // namespace motley

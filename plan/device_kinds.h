// The kinds of devices, in one table: their names in cluster files, what they can do, and how
// LibTorch knows them. Other code asks for a capability, and for a kind only to show its name.
// CONTRIBUTING.md has the recipe of a new kind.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace motley {

// The defaults are those of an accelerator.
struct DeviceCapabilities {
  // It computes the model: losses, gradients and evaluations are results. Otherwise it waits, reads
  // no data and sends noise.
  bool computes = true;
  // It holds parameters and moments, so that its run can be saved, resumed, restarted and moved to
  // another plan.
  bool keeps_state = true;
  // Its times and its memory are measured on the machine that has it. Otherwise the cluster file
  // gives them (Machine::virtual_speed and memory_gib), and no machine has to have it.
  bool is_measured = true;
  // Its memory is separate from the machine's.
  bool has_own_memory = true;
  // The machine's processor is free while the device is busy.
  bool leaves_processor_free = true;

  friend bool operator==(const DeviceCapabilities&, const DeviceCapabilities&) = default;
};

// What both can do.
[[nodiscard]] DeviceCapabilities operator&(const DeviceCapabilities& a,
                                           const DeviceCapabilities& b);

// Whether a device's name has a number: "cpu"; "virtual" or "virtual:1"; "cuda:0".
enum class DeviceNumbers { kNone, kOptional, kRequired };

// Where the code of a kind is, and which library reports its memory, model and dtypes
// (models/device/kinds/device_queries.h).
enum class DeviceLibrary {
  kTorch,  // LibTorch itself; the generic interfaces suffice
  kCuda,   // libtorch_cuda and CUDA's libraries
  kNamed,  // a library that registers its device with LibTorch; kDeviceLibraryVariable names it
};

struct DeviceKind {
  std::string_view name;  // in cluster files, before the number
  DeviceNumbers numbers = DeviceNumbers::kRequired;
  DeviceCapabilities capabilities{};

  // For messages.
  std::array<std::string_view, 3> spellings{};  // words that mean it; "cud*": all that begin so
  std::string_view label{};                     // shown with its results; "" = none
  std::string_view remedy{};                    // if the machine has none
  bool is_announced = true;  // proposed everywhere; otherwise where its library is set
  bool is_tried = true;      // Motley has run on it

  // For LibTorch. Kinds of one type differ in none of these.
  std::string_view torch_type{};  // its name of the kind; "" = it has no such device
  DeviceLibrary library = DeviceLibrary::kTorch;
  std::string_view product_dtypes{};  // of matrix products, besides fp32, unless the library says
  bool has_fp64 = true;
  bool has_unified_memory = false;  // shared with the processor: copying there saves no transfer
};

// In the order in which `motley devices` lists them.
[[nodiscard]] std::span<const DeviceKind> device_kinds();

// The kind of a device, by its name with or without a number; nullptr if unknown.
[[nodiscard]] const DeviceKind* find_device_kind(std::string_view device);

// Those of its kind. "auto" and unknown names have those of an accelerator.
[[nodiscard]] DeviceCapabilities capabilities_of(std::string_view device);
[[nodiscard]] bool has_own_memory(std::string_view device);
[[nodiscard]] bool leaves_processor_free(std::string_view device);
// Whether it computes and is not the processor.
[[nodiscard]] bool is_accelerator(const DeviceCapabilities& capabilities);
// DeviceKind::label; "" for unknown names.
[[nodiscard]] std::string_view label_of(std::string_view device);
// Whether its kind is one on which Motley has not run yet.
[[nodiscard]] bool is_untried_device(std::string_view device);

// The name of such a device in cluster files.
[[nodiscard]] std::string device_name(const DeviceKind& kind, int index);
// kConfig for an unknown device name. The machine itself checks whether it has the device.
[[nodiscard]] Result<void> check_device(const std::string& device);

// In place of a machine's devices: expands to those that it has
// (cluster/diagnose/automatic_devices.h).
inline constexpr const char* kAutomaticDevice = "auto";
// Environment variable with the path of the library of DeviceLibrary::kNamed, on the machine that
// has it.
inline constexpr const char* kDeviceLibraryVariable = "MOTLEY_DEVICE_LIBRARY";
inline constexpr const char* kUntriedNotice = "Motley has not run on such a device yet";
inline constexpr const char* kUntriedRemedy =
    "scripts/gpu-check tests the device and writes a report (docs/gpu-check.md)";
// Printed with all results of devices that do not compute.
inline constexpr const char* kVirtualNotice =
    "virtual devices: computing is simulated by waiting, for the times of the cluster file";

}  // namespace motley

// The devices that a worker finds on its machine, as a value and as JSON: for `motley devices`,
// `motley doctor` and the expansion of "auto" in a cluster file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/json/json_fields.h"
#include "base/result.h"

namespace motley {

// Why a device cannot compute, for display.
struct DeviceFault {
  std::string cause;  // "" = nothing
  std::string remedy;

  friend bool operator==(const DeviceFault&, const DeviceFault&) = default;
};

// An existing device. Texts are "" and sizes 0 if unknown.
struct DeviceFacts {
  std::string name;                // as in cluster files: "cuda:0"
  std::string model;               // the vendor's name
  std::string capability;          // of a CUDA device, "8.6"
  std::string driver;              // "for CUDA 12.4"
  std::int64_t memory_bytes = 0;   // its own; for the processor the machine's
  std::int64_t free_bytes = 0;     // free part of them
  std::vector<std::string> types;  // dtypes of its matrix products: "fp32", "bf16"
  DeviceFault fault;               // why no computation can run on it

  friend bool operator==(const DeviceFacts&, const DeviceFacts&) = default;
};

// A kind of device that is absent.
struct MissingKind {
  std::string kind;  // "cuda"
  DeviceFault fault;
  bool is_shown = false;  // the machine has such a device, which LibTorch cannot use

  friend bool operator==(const MissingKind&, const MissingKind&) = default;
};

struct DevicesFound {
  std::string torch;                 // LibTorch's version and build variant
  std::vector<DeviceFacts> devices;  // the processor first
  std::vector<MissingKind> missing;

  [[nodiscard]] const DeviceFacts* find(const std::string& name) const;  // nullptr when absent
  [[nodiscard]] std::vector<std::string> names() const;

  friend bool operator==(const DevicesFound&, const DevicesFound&) = default;
};

[[nodiscard]] Json devices_to_json(const DevicesFound& found);
// Errors as in JsonFields.
[[nodiscard]] Result<DevicesFound> devices_from_json(const JsonFields& fields);

}  // namespace motley

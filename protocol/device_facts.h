// What a worker finds of devices on its machine, as a value and as JSON: of `motley devices` and
// `motley doctor`, and what "auto" in a cluster file becomes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "plan/json_fields.h"

namespace motley {

// What would keep something from computing, for people.
struct DeviceFault {
  std::string cause;  // "" = nothing
  std::string remedy;

  friend bool operator==(const DeviceFault&, const DeviceFault&) = default;
};

// One that is there. Texts are "" and sizes 0 where nobody tells.
struct DeviceFacts {
  std::string name;                // as cluster files take it: "cuda:0"
  std::string model;               // what its maker calls it
  std::string capability;          // of a card for CUDA, "8.6"
  std::string driver;              // "for CUDA 12.4"
  std::int64_t memory_bytes = 0;   // its own; of the processor the machine's
  std::int64_t free_bytes = 0;     // of them
  std::vector<std::string> types;  // numbers that it multiplies matrices of: "fp32", "bf16"
  DeviceFault fault;               // why nothing would run on it

  friend bool operator==(const DeviceFacts&, const DeviceFacts&) = default;
};

// A kind of device of which there is none.
struct MissingKind {
  std::string kind;  // "cuda"
  DeviceFault fault;
  bool is_shown = false;  // the machine shows such a device, which LibTorch cannot use

  friend bool operator==(const MissingKind&, const MissingKind&) = default;
};

struct DevicesFound {
  std::string torch;                 // version of LibTorch and what it is built for
  std::vector<DeviceFacts> devices;  // the processor first
  std::vector<MissingKind> missing;

  [[nodiscard]] const DeviceFacts* find(const std::string& name) const;  // nullptr when absent
  [[nodiscard]] std::vector<std::string> names() const;

  friend bool operator==(const DevicesFound&, const DevicesFound&) = default;
};

[[nodiscard]] Json devices_to_json(const DevicesFound& found);
// Errors are those of JsonFields.
[[nodiscard]] Result<DevicesFound> devices_from_json(const JsonFields& fields);

}  // namespace motley

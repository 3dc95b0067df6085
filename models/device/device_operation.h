// DeviceOperation: an operation of LibTorch that some versions have for some devices. It is looked
// up by name at run time, so that one source serves all versions.
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

namespace motley {

class DeviceOperation {
 public:
  // "aten::…", without an overload. nullopt if this LibTorch has none for tensors on the device.
  [[nodiscard]] static std::optional<DeviceOperation> find(const char* name, c10::Device device);

  // Positional arguments, as many as differ from the operation's defaults; some versions have more.
  // Throws c10::Error if the operation does not take them.
  std::vector<c10::IValue> operator()(std::vector<c10::IValue> arguments) const;

 private:
  explicit DeviceOperation(const c10::OperatorHandle& operation) : operation_(operation) {}

  c10::OperatorHandle operation_;
};

}  // namespace motley

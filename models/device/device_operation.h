// DeviceOperation: an operation of LibTorch that some versions have for some devices. It is looked
// for by name while the program runs, so that one source serves all versions.
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

namespace motley {

class DeviceOperation {
 public:
  // "aten::…", without an overload. Nothing where this LibTorch has none for tensors on the device.
  [[nodiscard]] static std::optional<DeviceOperation> find(const char* name, c10::Device device);

  // Arguments by position, as many as are to differ from what the operation takes by itself;
  // versions have added others behind them. Throws c10::Error where it takes none such.
  std::vector<c10::IValue> operator()(std::vector<c10::IValue> arguments) const;

 private:
  explicit DeviceOperation(const c10::OperatorHandle& operation) : operation_(operation) {}

  c10::OperatorHandle operation_;
};

}  // namespace motley

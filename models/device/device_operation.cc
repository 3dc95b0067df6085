#include "models/device/device_operation.h"

#include <utility>

#include <c10/core/TensorOptions.h>

namespace motley {

std::optional<DeviceOperation> DeviceOperation::find(const char* name, c10::Device device) {
  const auto operation = c10::Dispatcher::singleton().findSchema({name, ""});
  if (!operation.has_value()) return std::nullopt;
  const c10::DispatchKey key = c10::TensorOptions(device).computeDispatchKey();
  if (!operation->hasKernelForDispatchKey(key)) return std::nullopt;
  return DeviceOperation(*operation);
}

std::vector<c10::IValue> DeviceOperation::operator()(std::vector<c10::IValue> arguments) const {
  operation_.schema().checkAndNormalizeInputs(arguments);
  operation_.callBoxed(&arguments);
  return arguments;
}

}  // namespace motley

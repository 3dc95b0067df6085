#include "models/device/compute_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/device/device_event.h"
#include "models/device/device_kinds.h"
#include "plan/cluster.h"

namespace motley {

Result<ComputeDevice> ComputeDevice::open(const std::string& name) {
  MOTLEY_TRY(check_device(name));
  if (name == "cpu") return ComputeDevice();
  const DeviceKind* kind = device_kind_of(name);
  if (kind == nullptr) {
    return Error{ErrorCode::kInternal, fmt::format("'{}' computes nothing", name), "", ""};
  }
  const DeviceCount found = count_devices(*kind);
  if (found.count == 0) {
    return Error{ErrorCode::kConfig, fmt::format("there is no device '{}' here", name), found.why,
                 kind->remedy};
  }
  const std::size_t colon = name.find(':');
  const int index = colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
  if (index >= found.count) {
    return Error{ErrorCode::kConfig, fmt::format("there is no device '{}' here", name),
                 fmt::format("this machine has {}", fmt::join(devices_here(), ", ")),
                 "name one of these in the cluster file"};
  }
  ComputeDevice device(c10::Device(kind->type, static_cast<c10::DeviceIndex>(index)));
  device.use_here();
  return device;
}

void ComputeDevice::use_here() const {
  if (!is_host()) c10::impl::VirtualGuardImpl(device_.type()).setDevice(device_);
}

void ComputeDevice::finish() const {
  if (is_host()) return;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  DeviceEvent(guard.getStream(device_)).wait();
}

std::optional<DeviceRoom> ComputeDevice::memory() const {
  const DeviceKind* const kind = device_kind_of(device_.type());
  if (kind == nullptr || kind->memory == nullptr) return std::nullopt;
  use_here();
  return kind->memory();
}

at::ScalarType exact_type(c10::Device device) {
  return device.type() == c10::DeviceType::MPS ? at::kFloat : at::kDouble;
}

std::vector<std::string> devices_here() {
  std::vector<std::string> names = {"cpu"};
  for (const DeviceKind& kind : device_kinds()) {
    const int count = count_devices(kind).count;
    for (int index = 0; index < count; ++index) {
      names.push_back(kind.is_numbered ? fmt::format("{}:{}", kind.name, index)
                                       : std::string(kind.name));
    }
  }
  return names;
}

}  // namespace motley

#include "protocol/device_facts.h"

#include <algorithm>

#include "base/json/json_table.h"
#include "plan/group_limits.h"

namespace motley {
namespace {

constexpr std::size_t kTypesMax = 16;
constexpr std::size_t kKindsMax = 16;

constexpr auto kFaultTable =
    json::table<DeviceFault>(json::required("cause", &DeviceFault::cause, json::text()),
                             json::required("remedy", &DeviceFault::remedy, json::text()));

// null = none.
struct Fault {
  [[nodiscard]] Json write(const DeviceFault& fault) const {
    return fault.cause.empty() ? Json() : kFaultTable.write(fault);
  }

  [[nodiscard]] Result<void> read(const JsonFields& fields, DeviceFault& fault) const {
    return fields.value().is_null() ? Result<void>() : kFaultTable.read(fields, fault);
  }
};

constexpr auto kDeviceTable = json::table<DeviceFacts>(
    json::required("name", &DeviceFacts::name, json::word(kDeviceNameOthers)),
    json::required("model", &DeviceFacts::model, json::text()),
    json::required("capability", &DeviceFacts::capability, json::text()),
    json::required("driver", &DeviceFacts::driver, json::text()),
    json::required("memory_bytes", &DeviceFacts::memory_bytes, json::whole()),
    json::required("free_bytes", &DeviceFacts::free_bytes, json::whole()),
    json::required("types", &DeviceFacts::types, json::list(json::text(), 0, kTypesMax)),
    json::required("fault", &DeviceFacts::fault, Fault{}));

constexpr auto kMissingKindTable =
    json::table<MissingKind>(json::required("kind", &MissingKind::kind, json::text()),
                             json::required("fault", &MissingKind::fault, Fault{}),
                             json::required("is_shown", &MissingKind::is_shown, json::flag()));

constexpr auto kDevicesTable = json::table<DevicesFound>(
    json::required("torch", &DevicesFound::torch, json::text()),
    json::required("devices", &DevicesFound::devices, json::list(kDeviceTable, 1, kDevicesMax)),
    json::required("missing", &DevicesFound::missing, json::list(kMissingKindTable, 0, kKindsMax)));

}  // namespace

const DeviceFacts* DevicesFound::find(const std::string& name) const {
  const auto found = std::ranges::find(devices, name, &DeviceFacts::name);
  return found == devices.end() ? nullptr : &*found;
}

std::vector<std::string> DevicesFound::names() const {
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const DeviceFacts& device : devices) names.push_back(device.name);
  return names;
}

Json devices_to_json(const DevicesFound& found) {
  return kDevicesTable.write(found);
}

Result<DevicesFound> devices_from_json(const JsonFields& fields) {
  return kDevicesTable.read(fields);
}

}  // namespace motley

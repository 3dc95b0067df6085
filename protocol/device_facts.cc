#include "protocol/device_facts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plan/limits.h"

namespace motley {
namespace {

constexpr std::size_t kTypesMax = 16;
constexpr std::size_t kKindsMax = 16;
constexpr std::int64_t kBytesMax = std::numeric_limits<std::int64_t>::max();

Json fault_to_json(const DeviceFault& fault) {
  if (fault.cause.empty()) return nullptr;
  return {{"cause", fault.cause}, {"remedy", fault.remedy}};
}

Result<DeviceFault> read_fault(const JsonFields& fields) {
  MOTLEY_ASSIGN(const JsonFields member, fields.member("fault"));
  DeviceFault fault;
  if (member.value().is_null()) return fault;
  MOTLEY_ASSIGN(fault.cause, member.text("cause"));
  MOTLEY_ASSIGN(fault.remedy, member.text("remedy"));
  return fault;
}

Json device_to_json(const DeviceFacts& device) {
  return {{"name", device.name},
          {"model", device.model},
          {"capability", device.capability},
          {"driver", device.driver},
          {"memory_bytes", device.memory_bytes},
          {"free_bytes", device.free_bytes},
          {"types", device.types},
          {"fault", fault_to_json(device.fault)}};
}

Result<DeviceFacts> read_device(const JsonFields& fields) {
  DeviceFacts device;
  MOTLEY_ASSIGN(device.name, fields.word("name", kDeviceNameOthers));
  MOTLEY_ASSIGN(device.model, fields.text("model"));
  MOTLEY_ASSIGN(device.capability, fields.text("capability"));
  MOTLEY_ASSIGN(device.driver, fields.text("driver"));
  MOTLEY_ASSIGN(device.memory_bytes, fields.integer("memory_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(device.free_bytes, fields.integer("free_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(device.types, fields.texts("types", kTypesMax));
  MOTLEY_ASSIGN(device.fault, read_fault(fields));
  return device;
}

Result<MissingKind> read_missing(const JsonFields& fields) {
  MissingKind missing;
  MOTLEY_ASSIGN(missing.kind, fields.text("kind"));
  MOTLEY_ASSIGN(missing.fault, read_fault(fields));
  MOTLEY_ASSIGN(missing.is_shown, fields.boolean("is_shown"));
  return missing;
}

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
  Json devices = Json::array();
  for (const DeviceFacts& device : found.devices) devices.push_back(device_to_json(device));
  Json missing = Json::array();
  for (const MissingKind& each : found.missing) {
    missing.push_back(
        {{"kind", each.kind}, {"fault", fault_to_json(each.fault)}, {"is_shown", each.is_shown}});
  }
  return {{"torch", found.torch}, {"devices", devices}, {"missing", missing}};
}

Result<DevicesFound> devices_from_json(const JsonFields& fields) {
  DevicesFound found;
  MOTLEY_ASSIGN(found.torch, fields.text("torch"));
  MOTLEY_ASSIGN(const auto devices, fields.items("devices", 1, kDevicesMax));
  for (const JsonFields& item : devices) {
    MOTLEY_ASSIGN(DeviceFacts device, read_device(item));
    found.devices.push_back(std::move(device));
  }
  MOTLEY_ASSIGN(const auto missing, fields.items("missing", 0, kKindsMax));
  for (const JsonFields& item : missing) {
    MOTLEY_ASSIGN(MissingKind kind, read_missing(item));
    found.missing.push_back(std::move(kind));
  }
  return found;
}

}  // namespace motley

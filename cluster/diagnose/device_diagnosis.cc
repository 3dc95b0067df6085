// The diagnosis of a machine's devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cluster/diagnose/diagnosis.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

std::string kind_of(const std::string& device) {
  return device.substr(0, device.find(':'));
}

Finding finding(FindingLevel level, const Machine& machine, std::string what, std::string remedy) {
  return {level, machine.name, "devices", std::move(what), std::move(remedy), ErrorCode::kConfig};
}

// "cuda:0: NVIDIA …, compute capability 8.6, driver for CUDA 12.4, 11.2 of 12.0 GiB free".
std::string device_text(const DeviceFacts& device) {
  std::vector<std::string> words;
  if (!device.model.empty()) words.push_back(device.model);
  if (!device.capability.empty()) words.push_back("compute capability " + device.capability);
  if (!device.driver.empty()) words.push_back("driver " + device.driver);
  if (!device.types.empty()) {
    words.push_back(fmt::format("computes in {}", fmt::join(device.types, ", ")));
  }
  if (device.memory_bytes > 0) {
    words.push_back(fmt::format("{} of {} free", bytes_text(static_cast<double>(device.free_bytes)),
                                bytes_text(static_cast<double>(device.memory_bytes))));
  }
  return fmt::format("{}{}{}", device.name, words.empty() ? "" : ": ", fmt::join(words, ", "));
}

Finding absence(const Machine& machine, const DevicesFound& found, const std::string& device) {
  const auto missing = std::ranges::find(found.missing, kind_of(device), &MissingKind::kind);
  const std::string what = fmt::format("no device '{}'", device);
  if (missing != found.missing.end()) {
    return finding(FindingLevel::kProblem, machine,
                   fmt::format("{}: {}", what, missing->fault.cause), missing->fault.remedy);
  }
  return finding(FindingLevel::kProblem, machine, what,
                 fmt::format("it has {}: use these names in the cluster file",
                             fmt::join(found.names(), ", ")));
}

Finding assess(const Machine& machine, const DevicesFound& found, const std::string& device) {
  const DeviceFacts* const facts = found.find(device);
  if (facts == nullptr) return absence(machine, found, device);
  if (!facts->fault.cause.empty()) {
    return finding(FindingLevel::kProblem, machine,
                   fmt::format("{} cannot compute: {}", device, facts->fault.cause),
                   facts->fault.remedy);
  }
  return finding(FindingLevel::kOk, machine, device_text(*facts), "");
}

}  // namespace

std::vector<Finding> diagnose_devices(const Machine& machine, const DevicesFound& found) {
  std::vector<Finding> findings;
  const std::set<std::string> listed(machine.devices.begin(), machine.devices.end());
  std::set<std::string> kinds;
  for (const std::string& device : listed) {
    kinds.insert(kind_of(device));
    // The processor is reported with its cores and its memory.
    if (is_accelerator(capabilities_of(device))) {
      findings.push_back(assess(machine, found, device));
    }
  }
  if (const auto untried = std::ranges::find_if(listed, is_untried_device);
      untried != listed.end() && found.find(*untried) != nullptr) {
    findings.push_back(finding(FindingLevel::kNote, machine,
                               fmt::format("{}: {}", *untried, kUntriedNotice), kUntriedRemedy));
  }
  for (const MissingKind& missing : found.missing) {
    if (!missing.is_shown || kinds.contains(missing.kind)) continue;
    findings.push_back(
        finding(FindingLevel::kWarning, machine, missing.fault.cause, missing.fault.remedy));
  }
  for (const DeviceFacts& device : found.devices) {
    if (!leaves_processor_free(device.name) || listed.contains(device.name)) continue;
    if (!device.fault.cause.empty()) {
      findings.push_back(
          finding(FindingLevel::kWarning, machine,
                  fmt::format("{} cannot compute: {}", device_text(device), device.fault.cause),
                  device.fault.remedy));
      continue;
    }
    findings.push_back(finding(FindingLevel::kNote, machine, "unused: " + device_text(device),
                               "name it in the cluster file, or write devices = [\"auto\"]"));
  }
  return findings;
}

}  // namespace motley

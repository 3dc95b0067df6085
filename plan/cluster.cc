#include "plan/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/json_fields.h"
#include "plan/limits.h"

namespace motley {

const Machine* Cluster::find(const std::string& name) const {
  const auto it = std::find_if(machines.begin(), machines.end(),
                               [&](const Machine& m) { return m.name == name; });
  return it == machines.end() ? nullptr : &*it;
}

LinkSpeed Cluster::link(const std::string& from, const std::string& to) const {
  if (from == to) return local;
  const auto it = std::find_if(links.begin(), links.end(),
                               [&](const LinkOverride& l) { return l.from == from && l.to == to; });
  return it == links.end() ? network : it->speed;
}

std::string starting_folder(const Machine& machine) {
  if (machine.shell.empty()) return "here";
  std::vector<std::string> words = machine.shell;
  // Options that every ssh command has are not informative.
  const std::vector<std::string> common = ssh_shell("");
  if (words.size() == common.size() &&
      std::equal(common.begin(), common.end() - 1, words.begin())) {
    words = {words.front(), words.back()};
  }
  return fmt::format("by `{}`", fmt::join(words, " "));
}

std::vector<std::string> ssh_shell(const std::string& destination) {
  return {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-T", destination};
}

bool has_automatic_devices(const Machine& machine) {
  return std::ranges::find(machine.devices, kAutomaticDevice) != machine.devices.end();
}

Result<std::string> medium_of_word(std::string_view word) {
  constexpr std::array<std::string_view, 4> kOtherWordsForCables{"ethernet", "lan", "wired",
                                                                 "none"};
  std::string medium(word);
  if (!is_word(medium, kMachineNameOthers)) {
    return Error{ErrorCode::kConfig, fmt::format("'{}' is not a medium", word),
                 "a medium is a word, 1 to 200 letters, digits, '.', '_' and '-'; cable is none",
                 "write wifi for each machine on one Wi-Fi"};
  }
  std::ranges::transform(medium, medium.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (medium == "cable") return std::string();
  if (std::ranges::find(kOtherWordsForCables, medium) != kOtherWordsForCables.end()) {
    return Error{
        ErrorCode::kConfig, fmt::format("'{}' is not a medium", word),
        fmt::format("a medium is what machines share, such as one Wi-Fi; '{}' shares none", word),
        "write cable, or leave medium out"};
  }
  return medium;
}

bool is_virtual_device(std::string_view device) {
  return device == "virtual" || device.starts_with("virtual:");
}

namespace {

// Whether it is "<kind>:<number>". Leading zeros are rejected, so that a device has only one name.
bool is_numbered(std::string_view device, std::string_view kind) {
  constexpr std::size_t kDigitsMax = 3;
  if (!device.starts_with(kind) || device.size() <= kind.size() + 1) return false;
  if (device[kind.size()] != ':') return false;
  const std::string_view digits = device.substr(kind.size() + 1);
  return digits.size() <= kDigitsMax && (digits.size() == 1 || digits.front() != '0') &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Cluster local_cluster_of(int devices, const char* device) {
  Machine machine;
  machine.name = "local";
  machine.devices.assign(static_cast<std::size_t>(devices), device);
  Cluster cluster;
  cluster.machines.push_back(std::move(machine));
  return cluster;
}

bool is_device_name(std::string_view device) {
  if (device == "cpu" || device == "mps" || device == "virtual") return true;
  return is_numbered(device, "cuda") || is_numbered(device, kLibraryDeviceKind) ||
         is_numbered(device, "virtual");
}

// The device name that was probably meant; "" if none is close.
std::string device_meant_by(std::string_view device) {
  std::string small(device);
  std::ranges::transform(small, small.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (small == kAutomaticDevice || is_device_name(small)) return small;
  std::string kind = small.substr(0, small.find(':'));
  if (kind == "cpu" || kind == "mps") return kind;
  if (kind == "metal") return "mps";
  if (kind.starts_with("cud") || kind == "gpu" || kind == "nvidia") return "cuda:0";
  return "";
}

}  // namespace

Result<void> check_device(const std::string& device) {
  if (is_device_name(device)) return {};
  const std::string meant = device_meant_by(device);
  return Error{
      ErrorCode::kConfig, fmt::format("unknown kind of device '{}'", excerpt(device)),
      R"("cpu", "mps", "cuda:0" to "cuda:999" compute, "auto" selects all devices, "virtual" simulates one)",
      fmt::format("write {} in the cluster file; `motley devices` lists what a machine has",
                  meant.empty() ? "one of these" : fmt::format("\"{}\"", meant))};
}

bool is_untried_device(std::string_view device) {
  return device == "mps";
}

bool has_own_memory(const std::string& device) {
  return leaves_processor_free(device) && !is_virtual_device(device);
}

bool leaves_processor_free(std::string_view device) {
  return device != "cpu" && !device.starts_with("cpu:");
}

bool is_virtual(const Cluster& cluster) {
  return std::any_of(cluster.machines.begin(), cluster.machines.end(),
                     [](const Machine& machine) { return machine.virtual_speed.has_value(); });
}

bool is_mixed(const Cluster& cluster) {
  return is_virtual(cluster) &&
         !std::all_of(cluster.machines.begin(), cluster.machines.end(),
                      [](const Machine& machine) { return machine.virtual_speed.has_value(); });
}

Cluster local_cluster(int devices) {
  return local_cluster_of(devices, "cpu");
}

Cluster automatic_cluster(int devices) {
  return local_cluster_of(devices, kAutomaticDevice);
}

}  // namespace motley

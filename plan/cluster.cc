#include "plan/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/json/json_fields.h"
#include "plan/group_limits.h"

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

namespace {

Cluster local_cluster_of(int devices, const char* device) {
  Machine machine;
  machine.name = "local";
  machine.devices.assign(static_cast<std::size_t>(devices), device);
  Cluster cluster;
  cluster.machines.push_back(std::move(machine));
  return cluster;
}

}  // namespace

DeviceCapabilities capabilities_of(const Machine& machine) {
  DeviceCapabilities common;
  for (const std::string& device : machine.devices) common = common & capabilities_of(device);
  return common;
}

DeviceCapabilities capabilities_of(const Cluster& cluster) {
  DeviceCapabilities common;
  for (const Machine& machine : cluster.machines) common = common & capabilities_of(machine);
  return common;
}

bool is_mixed(const Cluster& cluster) {
  const auto computes = [](const Machine& machine) { return capabilities_of(machine).computes; };
  return !std::ranges::all_of(cluster.machines, computes) &&
         std::ranges::any_of(cluster.machines, computes);
}

Cluster local_cluster(int devices) {
  return local_cluster_of(devices, "cpu");
}

Cluster automatic_cluster(int devices) {
  return local_cluster_of(devices, kAutomaticDevice);
}

}  // namespace motley

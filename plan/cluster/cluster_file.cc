#include "plan/cluster/cluster_file.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/json/json_fields.h"
#include "base/toml.h"
#include "plan/cluster/virtual_machines.h"
#include "plan/group_limits.h"
#include "plan/toml_table.h"
#include "plan/units.h"

namespace motley {
namespace {

constexpr double kBandwidthMinMbps = 1e-3;
constexpr double kBandwidthMaxMbps = 1e9;
constexpr double kLatencyMaxUs = 60e6;
constexpr double kMemoryMaxGib = 1e6;
constexpr std::size_t kMachinesMax = 4096;
constexpr std::size_t kLinksMax = 65'536;

// The address in the system's notation; "" if it is not numeric.
std::string numeric_address(const std::string& address) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  std::array<char, INET6_ADDRSTRLEN> text{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, address.c_str(), bytes.data()) != 1) continue;
    return inet_ntop(family, bytes.data(), text.data(), text.size());
  }
  return "";
}

bool is_loopback(const std::string& address) {
  return address.empty() || address.starts_with("127.") || address == "::1";
}

bool is_here(const std::string& address, const LocalMachine& here) {
  if (is_loopback(address) || (!here.name.empty() && address == here.name)) return true;
  return here.addresses.contains(numeric_address(address));
}

// Reads the keys for starting commands there; if none is set, the address decides.
Result<void> read_shell(TomlTable& table, const LocalMachine& here, Machine& machine) {
  std::string ssh;
  MOTLEY_TRY(table.read("ssh", ssh));
  MOTLEY_TRY(table.read("shell", machine.shell));
  if (table.has("ssh") && table.has("shell")) {
    return table.bad("ssh", "'ssh' and 'shell' exclude each other", "keep one of them");
  }
  // ssh would parse a destination that begins with '-' as an option.
  if (table.has("ssh") && (ssh.empty() || ssh.front() == '-')) {
    return table.bad("ssh", "not an ssh destination", "write a host name or USER@HOST");
  }
  if (!ssh.empty()) {
    machine.shell = ssh_shell(ssh);
  } else if (!table.has("shell") && !is_here(machine.address, here)) {
    machine.shell = ssh_shell(machine.address);
  }
  return {};
}

Result<void> check_address(const TomlTable& table,
                           const LocalMachine& here,
                           const std::string& address) {
  const bool is_own_name = !here.name.empty() && address == here.name;
  if (address.empty() || is_own_name || !numeric_address(address).empty()) return {};
  return table.bad("address",
                   "a numeric IP address was expected, or the name of the machine that reads this",
                   "write the address, and put a host name into 'ssh'");
}

Result<void> check_devices(const TomlTable& table, const Machine& machine) {
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    if (machine.devices[d] == kAutomaticDevice) continue;
    const auto checked = check_device(machine.devices[d]);
    if (checked.ok()) continue;
    const Error& error = checked.error();
    return table.bad(fmt::format("devices[{}]", d),
                     fmt::format("machine {}: {}; {}", machine.name, error.what, error.cause),
                     error.remedy);
  }
  return {};
}

// Replaces the word by its meaning.
Result<void> read_medium(const TomlTable& table, Machine& machine) {
  if (machine.medium.empty()) return {};
  auto medium = medium_of_word(machine.medium);
  if (!medium.ok()) return table.bad("medium", medium.error().cause, medium.error().remedy);
  machine.medium = *std::move(medium);
  machine.names_cable = machine.medium.empty();
  return {};
}

Result<Machine> read_machine(TomlTable& table, const LocalMachine& here) {
  Machine machine;
  MOTLEY_TRY(table.read("name", machine.name));
  MOTLEY_TRY(table.read("address", machine.address));
  if (machine.address == "localhost") machine.address = "127.0.0.1";
  MOTLEY_TRY(read_shell(table, here, machine));
  MOTLEY_TRY(table.read("devices", machine.devices));
  MOTLEY_TRY(table.read("memory_gib", machine.memory_gib, 0, kMemoryMaxGib));
  MOTLEY_TRY(table.read("threads", machine.threads, 0, kThreadsMax));
  MOTLEY_TRY(table.read("interface", machine.interface));
  MOTLEY_TRY(table.read("medium", machine.medium));
  MOTLEY_TRY(table.read("cpu_share", machine.cpu_share, 0, kCpuShareMax));
  MOTLEY_TRY(table.read("motley_dir", machine.motley_dir));
  MOTLEY_TRY(table.read("runs_dir", machine.runs_dir));
  MOTLEY_ASSIGN(machine.virtual_speed, read_virtual_speed(table, machine));
  MOTLEY_TRY(table.finish());
  if (!table.has("name"))
    return table.bad("", "it has no name", "add name = \"…\" below [[machine]]");
  if (!is_word(machine.name, kMachineNameOthers)) {
    return table.bad("name",
                     "a name is 1 to 200 letters, digits, '.', '_' and '-', and nothing else",
                     "rename the machine");
  }
  MOTLEY_TRY(read_medium(table, machine));
  MOTLEY_TRY(check_address(table, here, machine.address));
  MOTLEY_TRY(check_devices(table, machine));
  if (!machine.runs_dir.empty() && machine.runs_dir.front() != '/') {
    return table.bad("runs_dir", "it is not an absolute path", "begin it with '/'");
  }
  if (machine.devices.empty()) {
    return table.bad("devices", "it has no device", "list one, or remove the machine");
  }
  if (has_automatic_devices(machine) && machine.devices.size() > 1) {
    return table.bad("devices", "\"auto\" selects all devices, but more are listed",
                     "write devices = [\"auto\"], or name each device");
  }
  return machine;
}

Result<LinkSpeed> read_speed(TomlTable& table, const LinkSpeed& otherwise) {
  double bandwidth_mbps = otherwise.bandwidth_bytes_per_s / kBytesPerMegabit;
  double latency_us = otherwise.latency_s / kSecondsPerMicrosecond;
  MOTLEY_TRY(table.read("bandwidth_mbps", bandwidth_mbps, kBandwidthMinMbps, kBandwidthMaxMbps));
  MOTLEY_TRY(table.read("latency_us", latency_us, 0, kLatencyMaxUs));
  return LinkSpeed{
      table.has("bandwidth_mbps") ? bandwidth_mbps * kBytesPerMegabit
                                  : otherwise.bandwidth_bytes_per_s,
      table.has("latency_us") ? latency_us * kSecondsPerMicrosecond : otherwise.latency_s};
}

Result<std::vector<Machine>> read_machines(TomlTable& root,
                                           const LocalMachine& here,
                                           std::vector<TomlTable>& tables) {
  if (tables.size() > kMachinesMax) {
    return root.bad("machine", fmt::format("it has {} machines", tables.size()),
                    fmt::format("list at most {}", kMachinesMax));
  }
  std::vector<Machine> machines;
  std::set<std::string> names;
  std::size_t devices = 0;
  for (TomlTable& table : tables) {
    MOTLEY_ASSIGN(Machine machine, read_machine(table, here));
    if (!names.insert(machine.name).second) {
      return table.bad("name", fmt::format("two machines are named '{}'", machine.name),
                       "rename one of them");
    }
    devices += machine.devices.size();
    if (devices > kDevicesMax) {
      return table.bad("devices", fmt::format("the cluster has {} devices up to this one", devices),
                       fmt::format("list at most {}", kDevicesMax));
    }
    machines.push_back(std::move(machine));
  }
  return machines;
}

std::vector<std::string> names_of(const std::vector<Machine>& machines) {
  std::vector<std::string> names;
  names.reserve(machines.size());
  for (const Machine& machine : machines) names.push_back(machine.name);
  return names;
}

Result<LinkOverride> read_link(TomlTable& table, const Cluster& cluster) {
  LinkOverride link;
  MOTLEY_TRY(table.read("from", link.from));
  MOTLEY_TRY(table.read("to", link.to));
  MOTLEY_ASSIGN(link.speed, read_speed(table, cluster.network));
  MOTLEY_TRY(table.finish());
  for (const auto& [key, name] : {std::pair("from", link.from), {"to", link.to}}) {
    if (!table.has(key)) {
      return table.bad("", fmt::format("it has no '{}'", key),
                       fmt::format("add {} = \"…\" with the name of a machine", key));
    }
    if (cluster.find(name) != nullptr) continue;
    const std::vector<std::string> names = names_of(cluster.machines);
    const std::string close = closest_word(name, names);
    return table.bad(key, fmt::format("no machine is named '{}'", excerpt(name)),
                     close.empty() ? "use the name of a machine of this file"
                                   : fmt::format("did you mean '{}'?", close));
  }
  if (link.from == link.to) {
    return table.bad("to", "both ends are the same machine", "use the names of two machines");
  }
  return link;
}

Result<std::vector<LinkOverride>> read_links(TomlTable& root, const Cluster& cluster) {
  MOTLEY_ASSIGN(auto tables, root.tables("link"));
  if (tables.size() > kLinksMax) {
    return root.bad("link", fmt::format("it has {} links", tables.size()),
                    fmt::format("list at most {}, and set [network] for the others", kLinksMax));
  }
  std::vector<LinkOverride> links;
  std::set<std::pair<std::string, std::string>> seen;
  for (TomlTable& table : tables) {
    MOTLEY_ASSIGN(LinkOverride link, read_link(table, cluster));
    if (!seen.insert({link.from, link.to}).second) {
      return table.bad("", "duplicate link", "remove one of them");
    }
    links.push_back(std::move(link));
  }
  return links;
}

// Checks that machines of one group can reach each other. `tables` is [MachineId], like `machines`.
Result<void> check_addresses(const std::vector<Machine>& machines,
                             const std::vector<TomlTable>& tables) {
  const bool is_mixture = is_mixed({.machines = machines});
  const auto counts = [&](const Machine& m) { return !is_mixture || capabilities_of(m).computes; };
  const auto loopback = [&](const Machine& m) { return counts(m) && is_loopback(m.address); };
  const auto remote = [&](const Machine& m) { return counts(m) && !is_loopback(m.address); };
  const auto here = std::find_if(machines.begin(), machines.end(), loopback);
  const auto there = std::find_if(machines.begin(), machines.end(), remote);
  if (here != machines.end() && there != machines.end()) {
    const TomlTable& table = tables[static_cast<std::size_t>(here - machines.begin())];
    return table.bad(table.has("address") ? "address" : "",
                     fmt::format("'{}' has no address that '{}' ({}) can reach", here->name,
                                 there->name, there->address),
                     fmt::format("give '{}' its address in that network", here->name));
  }
  if (machines.size() == 1) return {};
  for (std::size_t m = 0; m < machines.size(); ++m) {
    if (machines[m].shell.empty() || !machines[m].address.empty()) continue;
    return tables[m].bad(
        "", fmt::format("'{}' is started by a remote shell and has no address", machines[m].name),
        "add address = \"…\", so that the others can reach it");
  }
  return {};
}

}  // namespace

Result<Cluster> parse_cluster(std::string_view toml_text,
                              const std::string& source,
                              const LocalMachine& here,
                              Mixture mixture) {
  MOTLEY_ASSIGN(const TomlDocument document, parse_toml(toml_text, source));
  TomlTable root(document);
  Cluster cluster;
  MOTLEY_ASSIGN(auto network, root.table("network"));
  if (network) {
    MOTLEY_ASSIGN(cluster.network, read_speed(*network, cluster.network));
    MOTLEY_TRY(network->read("trusted", cluster.trusted));
    MOTLEY_TRY(network->finish());
  }
  MOTLEY_ASSIGN(auto machine_tables, root.tables("machine"));
  MOTLEY_ASSIGN(cluster.machines, read_machines(root, here, machine_tables));
  MOTLEY_ASSIGN(cluster.links, read_links(root, cluster));
  MOTLEY_TRY(root.finish());
  if (cluster.machines.empty()) {
    return root.bad("", "it has no machine", "add a [[machine]] with name and address");
  }
  if (mixture == Mixture::kRefused) {
    MOTLEY_TRY(check_all_virtual(cluster.machines, machine_tables));
  } else if (is_mixed(cluster)) {
    remove_from_network(cluster.machines);
  }
  MOTLEY_TRY(check_addresses(cluster.machines, machine_tables));
  return cluster;
}

}  // namespace motley

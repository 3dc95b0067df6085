#include "partitioner/cluster.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "base/toml.h"
#include "partitioner/json_fields.h"

namespace motley {
namespace {

constexpr double kBytesPerMegabit = 1e6 / 8;
constexpr double kSecondsPerMicrosecond = 1e-6;
constexpr double kBandwidthMinMbps = 1e-3;
constexpr double kBandwidthMaxMbps = 1e9;
constexpr double kLatencyMaxUs = 60e6;
constexpr double kMemoryMaxGib = 1e6;
constexpr double kCpuShareMax = 4096;
constexpr int kThreadsMax = 4096;

// One table of the document: typed reads that leave the default where the key is absent, and a
// place in every error. Each read marks its key as known; finish() refuses the others.
class TomlTable {
 public:
  TomlTable(const TomlDocument& document, const Json& table, std::string path)
      : document_(document), table_(table), path_(std::move(path)) {}

  Result<void> read(const char* key, std::string& value) {
    const Json* json = find(key);
    if (json == nullptr) return {};
    if (!json->is_string()) return bad(key, "a string was expected", "put it in quotes");
    value = json->get<std::string>();
    return {};
  }

  Result<void> read(const char* key, bool& value) {
    const Json* json = find(key);
    if (json == nullptr) return {};
    if (!json->is_boolean()) return bad(key, "true or false was expected", "");
    value = json->get<bool>();
    return {};
  }

  Result<void> read(const char* key, std::vector<std::string>& value) {
    const Json* json = find(key);
    if (json == nullptr) return {};
    const auto is_string = [](const Json& item) { return item.is_string(); };
    if (!json->is_array() || !std::all_of(json->begin(), json->end(), is_string)) {
      return bad(key, "a list of strings was expected", "write it as [\"a\", \"b\"]");
    }
    value = json->get<std::vector<std::string>>();
    return {};
  }

  Result<void> read(const char* key, double& value, double min, double max) {
    const Json* json = find(key);
    if (json == nullptr) return {};
    const double number = json->is_number() ? json->get<double>() : std::nan("");
    // Written so that NaN is refused too.
    if (!(number >= min && number <= max)) {
      return bad(key, fmt::format("a number from {} to {} was expected", min, max), "");
    }
    value = number;
    return {};
  }

  Result<void> read(const char* key, int& value, int min, int max) {
    const Json* json = find(key);
    if (json == nullptr) return {};
    const bool whole = json->is_number_integer();
    const std::int64_t number = whole ? json->get<std::int64_t>() : 0;
    if (!whole || number < min || number > max) {
      return bad(key, fmt::format("a whole number from {} to {} was expected", min, max), "");
    }
    value = static_cast<int>(number);
    return {};
  }

  // The tables of an array of tables; empty when the key is absent.
  Result<std::vector<TomlTable>> tables(const char* key) {
    std::vector<TomlTable> tables;
    const Json* json = find(key);
    if (json == nullptr) return tables;
    const auto is_table = [](const Json& item) { return item.is_object(); };
    if (!json->is_array() || !std::all_of(json->begin(), json->end(), is_table)) {
      return bad(key, "an array of tables was expected", fmt::format("write it as [[{}]]", key));
    }
    for (const Json& item : *json) {
      tables.emplace_back(document_, item, fmt::format("{}[{}]", key, tables.size()));
    }
    return tables;
  }

  Result<std::optional<TomlTable>> table(const char* key) {
    const Json* json = find(key);
    if (json == nullptr) return std::optional<TomlTable>();
    if (!json->is_object()) return bad(key, "a table was expected", fmt::format("write [{}]", key));
    return std::optional(TomlTable(document_, *json, key));
  }

  [[nodiscard]] bool has(const char* key) const { return table_.contains(key); }

  // REQUIRES: all keys that may stand here were read.
  Result<void> finish() const {
    for (const auto& [key, value] : table_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const std::string close = closest_word(key, known_);
      return bad(key, "there is no such key here",
                 close.empty() ? fmt::format("use one of: {}", fmt::join(known_, ", "))
                               : fmt::format("did you mean '{}'?", close));
    }
    return {};
  }

  // `key` may be "" for the table itself.
  Error bad(const std::string& key, const std::string& cause, const std::string& remedy) const {
    const std::string path = key.empty() ? path_ : path_.empty() ? key : path_ + "." + key;
    return {ErrorCode::kConfig,
            fmt::format("unusable {}, {}", path.empty() ? "cluster" : "'" + path + "'",
                        document_.where(path)),
            cause, remedy};
  }

 private:
  const Json* find(const char* key) {
    known_.emplace_back(key);
    const auto it = table_.find(key);
    return it == table_.end() ? nullptr : &*it;
  }

  const TomlDocument& document_;
  const Json& table_;
  std::string path_;
  std::vector<std::string> known_;
};

bool is_numeric_address(const std::string& address) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
}

bool is_loopback(const std::string& address) {
  return address.empty() || address.starts_with("127.") || address == "::1";
}

std::vector<std::string> ssh_shell(const std::string& destination) {
  return {"ssh", "-o", "BatchMode=yes", "-T", destination};
}

// The three ways to say how commands are started there; without any of them the address decides.
Result<void> read_shell(TomlTable& table, Machine& machine) {
  std::string ssh;
  MOTLEY_TRY(table.read("ssh", ssh));
  MOTLEY_TRY(table.read("shell", machine.shell));
  if (table.has("ssh") && table.has("shell")) {
    return table.bad("ssh", "'ssh' and 'shell' both say how to start commands there",
                     "keep one of them");
  }
  // A destination that begins with '-' would be an option of ssh.
  if (table.has("ssh") && (ssh.empty() || ssh.front() == '-')) {
    return table.bad("ssh", "not an ssh destination", "write a host name or USER@HOST");
  }
  if (!ssh.empty()) {
    machine.shell = ssh_shell(ssh);
  } else if (!table.has("shell") && !is_loopback(machine.address)) {
    machine.shell = ssh_shell(machine.address);
  }
  return {};
}

Result<Machine> read_machine(TomlTable& table) {
  Machine machine;
  MOTLEY_TRY(table.read("name", machine.name));
  MOTLEY_TRY(table.read("address", machine.address));
  MOTLEY_TRY(read_shell(table, machine));
  MOTLEY_TRY(table.read("devices", machine.devices));
  MOTLEY_TRY(table.read("memory_gib", machine.memory_gib, 0, kMemoryMaxGib));
  MOTLEY_TRY(table.read("threads", machine.threads, 0, kThreadsMax));
  MOTLEY_TRY(table.read("interface", machine.interface));
  MOTLEY_TRY(table.read("cpu_share", machine.cpu_share, 0, kCpuShareMax));
  MOTLEY_TRY(table.read("motley_dir", machine.motley_dir));
  MOTLEY_TRY(table.finish());
  if (!table.has("name")) return table.bad("", "it has no name", "add name = \"…\"");
  if (!is_word(machine.name, kMachineNameOthers)) {
    return table.bad("name", "a name may hold letters, digits, '.', '_' and '-' only", "");
  }
  if (!machine.address.empty() && !is_numeric_address(machine.address)) {
    return table.bad("address", "a numeric IP address was expected",
                     "write the address, and put a host name into 'ssh'");
  }
  for (const std::string& device : machine.devices) {
    if (is_word(device, kDeviceNameOthers)) continue;
    return table.bad("devices", fmt::format("'{}' does not name a device", device),
                     "write cpu, cuda:0, …");
  }
  if (machine.devices.empty()) {
    return table.bad("devices", "it has no device", "list one, or remove the machine");
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

Result<LinkOverride> read_link(TomlTable& table, const Cluster& cluster) {
  LinkOverride link;
  MOTLEY_TRY(table.read("from", link.from));
  MOTLEY_TRY(table.read("to", link.to));
  MOTLEY_ASSIGN(link.speed, read_speed(table, cluster.network));
  MOTLEY_TRY(table.finish());
  std::vector<std::string> names;
  for (const Machine& machine : cluster.machines) names.push_back(machine.name);
  for (const auto& [key, name] : {std::pair("from", link.from), {"to", link.to}}) {
    if (!table.has(key)) return table.bad("", fmt::format("it has no '{}'", key), "name a machine");
    if (cluster.find(name) != nullptr) continue;
    const std::string close = closest_word(name, names);
    return table.bad(key, fmt::format("no machine is named '{}'", name),
                     close.empty() ? "" : fmt::format("did you mean '{}'?", close));
  }
  if (link.from == link.to) {
    return table.bad("", "both ends are the same machine", "name two machines");
  }
  return link;
}

// Machines of one group must be able to reach each other.
Result<void> check_addresses(const Cluster& cluster, const TomlTable& root) {
  const auto loopback = [](const Machine& m) { return is_loopback(m.address); };
  const auto& machines = cluster.machines;
  const auto here = std::find_if(machines.begin(), machines.end(), loopback);
  const auto there = std::find_if_not(machines.begin(), machines.end(), loopback);
  if (here != machines.end() && there != machines.end()) {
    return root.bad("machine",
                    fmt::format("'{}' has no address that '{}' ({}) can reach", here->name,
                                there->name, there->address),
                    fmt::format("give '{}' its address in that network", here->name));
  }
  if (machines.size() == 1) return {};
  for (const Machine& machine : machines) {
    if (machine.shell.empty() || !machine.address.empty()) continue;
    return root.bad(
        "machine",
        fmt::format("'{}' is started by a remote shell and has no address", machine.name),
        "add address = \"…\", so that the others reach it");
  }
  return {};
}

}  // namespace

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

Result<Cluster> parse_cluster(std::string_view toml_text, const std::string& source) {
  MOTLEY_ASSIGN(const TomlDocument document, parse_toml(toml_text, source));
  TomlTable root(document, document.root, "");
  Cluster cluster;
  MOTLEY_ASSIGN(auto network, root.table("network"));
  if (network) {
    MOTLEY_ASSIGN(cluster.network, read_speed(*network, cluster.network));
    MOTLEY_TRY(network->read("trusted", cluster.trusted));
    MOTLEY_TRY(network->finish());
  }
  MOTLEY_ASSIGN(auto machines, root.tables("machine"));
  for (TomlTable& table : machines) {
    MOTLEY_ASSIGN(Machine machine, read_machine(table));
    if (cluster.find(machine.name) != nullptr) {
      return table.bad("name", fmt::format("two machines are named '{}'", machine.name),
                       "rename one of them");
    }
    cluster.machines.push_back(std::move(machine));
  }
  MOTLEY_ASSIGN(auto links, root.tables("link"));
  std::set<std::pair<std::string, std::string>> seen;
  for (TomlTable& table : links) {
    MOTLEY_ASSIGN(LinkOverride link, read_link(table, cluster));
    if (!seen.insert({link.from, link.to}).second) {
      return table.bad("", "this link stands in the file twice", "remove one of them");
    }
    cluster.links.push_back(std::move(link));
  }
  MOTLEY_TRY(root.finish());
  if (cluster.machines.empty()) {
    return root.bad("", "it has no machine", "add a [[machine]] with name and address");
  }
  MOTLEY_TRY(check_addresses(cluster, root));
  return cluster;
}

Cluster local_cluster(int devices) {
  Machine machine;
  machine.name = "local";
  machine.devices.assign(static_cast<std::size_t>(devices), "cpu");
  Cluster cluster;
  cluster.machines.push_back(std::move(machine));
  return cluster;
}

}  // namespace motley

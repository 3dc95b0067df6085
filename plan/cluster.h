// Cluster: the machines, their devices and the links between them, as a value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/device_kinds.h"

namespace motley {

// The speed of each of a machine's devices that are not measured; exactly one field is not 0.
struct VirtualSpeed {
  double tokens_per_s = 0;  // training speed for the given model, alone
  double gflops = 0;        // sustained, in 10^9 operations per second

  friend bool operator==(const VirtualSpeed&, const VirtualSpeed&) = default;
};

struct Machine {
  std::string name;
  std::string address;             // numeric address for peers; "" = this machine only
  std::vector<std::string> shell;  // argv prefix of commands there; empty = started locally
  std::vector<std::string> devices = {"cpu"};  // one stage process each
  double memory_gib = 0;                       // for all its devices together; 0 = as measured
  int threads = 0;                             // per device; 0 = run.threads
  std::string interface;                       // network interface; "" = that of `address`
  // The shared (half-duplex) medium of the machine, such as Wi-Fi: sends and receives of all its
  // machines are serialised. "" = a dedicated link in each direction, such as a cable to a switch.
  std::string medium;
  bool names_cable = false;  // set in the cluster file; overrides link measurements
  // Links show a shared medium, but not which of the machines are on it.
  bool medium_is_supposed = false;
  double cpu_share = 0;    // cores for each of its processes; 0 = no limit
  std::string motley_dir;  // folder of motley-stage there; "" = the same as here
  std::string runs_dir;    // absolute folder there for its parts of runs; "" = same as run.dir
  // Of devices that are not measured, in the file; else device_model (cluster/virtual_numbers.h).
  std::optional<VirtualSpeed> virtual_speed;
  // From the cluster file (plan/cluster/device_models.h); "" = none.
  std::string device_model;

  friend bool operator==(const Machine&, const Machine&) = default;
};

struct LinkSpeed {
  double bandwidth_bytes_per_s = 125e6;
  double latency_s = 200e-6;

  friend bool operator==(const LinkSpeed&, const LinkSpeed&) = default;
};

struct LinkOverride {
  std::string from;
  std::string to;
  LinkSpeed speed;

  friend bool operator==(const LinkOverride&, const LinkOverride&) = default;
};

struct Cluster {
  std::vector<Machine> machines;
  LinkSpeed network;            // between machines, unless overridden
  LinkSpeed local{4e9, 20e-6};  // between processes on one machine
  bool trusted = false;         // the network's users are trusted: plain transports allowed
  // Directed. Links with an absent machine still contribute to the speed of the other machine's
  // network.
  std::vector<LinkOverride> links;

  [[nodiscard]] const Machine* find(const std::string& name) const;  // nullptr when absent
  // Speed from one machine to another (or within one if the names are equal).
  [[nodiscard]] LinkSpeed link(const std::string& from, const std::string& to) const;

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// The prefix of commands over ssh, which must not prompt.
[[nodiscard]] std::vector<std::string> ssh_shell(const std::string& destination);

// Whether kAutomaticDevice is among its devices.
[[nodiscard]] bool has_automatic_devices(const Machine& machine);

// Machine::medium from the text in a cluster file, case-insensitive: "cable" becomes "". kConfig
// for an invalid word, and for other words for cables, which would be taken for a shared medium.
[[nodiscard]] Result<std::string> medium_of_word(std::string_view word);

// What all devices of the machine can do, or all devices of the cluster.
[[nodiscard]] DeviceCapabilities capabilities_of(const Machine& machine);
[[nodiscard]] DeviceCapabilities capabilities_of(const Cluster& cluster);
// Whether only some of its machines compute. Such a cluster can be planned with, but not run on.
[[nodiscard]] bool is_mixed(const Cluster& cluster);

// "here" or "by `ssh anna@laptop`": how commands are started on the machine.
[[nodiscard]] std::string starting_folder(const Machine& machine);

// This machine alone, with `devices` CPU devices of equal speed.
[[nodiscard]] Cluster local_cluster(int devices);
// This machine alone with its actual devices, and at least `devices` of them.
[[nodiscard]] Cluster automatic_cluster(int devices);

}  // namespace motley

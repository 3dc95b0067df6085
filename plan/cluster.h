// Cluster: the machines, their devices and the links between them, as a value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace motley {

// How fast a machine's virtual devices would be, each of them; one of the two is not 0.
struct VirtualSpeed {
  double tokens_per_s = 0;  // that it trains of the model at hand, alone
  double gflops = 0;        // that it sustains, in 10^9 operations a second

  friend bool operator==(const VirtualSpeed&, const VirtualSpeed&) = default;
};

struct Machine {
  std::string name;
  std::string address;             // numeric address that peers reach; "" = this machine only
  std::vector<std::string> shell;  // argv prefix that starts a command there; empty = started here
  std::vector<std::string> devices = {"cpu"};  // one stage process each
  double memory_gib = 0;                       // for all its devices together; 0 = as measured
  int threads = 0;                             // per device; 0 = run.threads
  std::string interface;  // network interface; "" = the one that holds `address`
  // What it reaches the others by, where several share that or its two directions do, as over
  // Wi-Fi: all that machines of one medium send and receive takes turns. "" = a way of its own in
  // each direction, as a cable to a switch is.
  std::string medium;
  bool says_cable = false;  // the cluster file does, whatever links seem to show
  // Links show that machines of the medium take turns, and not which of them are on it.
  bool medium_is_supposed = false;
  double cpu_share = 0;    // cores granted to each of its processes; 0 = no limit
  std::string motley_dir;  // folder of motley-stage there; "" = the same as here
  std::string runs_dir;    // absolute folder there for its parts of runs; "" = as run.dir lies here
  // Set where the devices are virtual: then all of the machine's are.
  std::optional<VirtualSpeed> virtual_speed;
  // That the cluster file names (plan/cluster/device_models.h); "" = none.
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
  LinkSpeed local{4e9, 20e-6};  // between processes of one machine
  bool trusted = false;         // the network's users are trusted: plain transports allowed
  // Directed. Those with a machine that is gone tell how fast the network of the other one is.
  std::vector<LinkOverride> links;

  [[nodiscard]] const Machine* find(const std::string& name) const;  // nullptr when absent
  // Speed from one machine to another (or within one when the names are equal).
  [[nodiscard]] LinkSpeed link(const std::string& from, const std::string& to) const;

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// The prefix of a command over ssh, which must not ask for anything.
[[nodiscard]] std::vector<std::string> ssh_shell(const std::string& destination);

// Among a machine's devices: those that it has (cluster/examine/automatic_devices.h). No other
// stands beside it.
inline constexpr const char* kAutomaticDevice = "auto";
[[nodiscard]] bool has_automatic_devices(const Machine& machine);

// Machine::medium by the word that a person writes for it, in any case of letters: "cable" is none.
// kConfig for what is no word, and for other words for cables, which would pass for a radio.
[[nodiscard]] Result<std::string> medium_of_word(std::string_view word);

// Whether a device's name ("virtual", "virtual:1") is that of a virtual one: what it computes is
// not computed but waited for.
[[nodiscard]] bool is_virtual_device(std::string_view device);
// kConfig for a name that no device has: "cpu", "cuda:N", "mps", "privateuseone:N" (what a library
// registers with LibTorch) and the virtual ones exist. Whether a machine has it is seen there.
[[nodiscard]] Result<void> check_device(const std::string& device);
// Whether it is of a kind that Motley has not run on yet.
[[nodiscard]] bool is_untried_device(std::string_view device);
inline constexpr const char* kUntriedNotice = "Motley has not run on such a device yet";
inline constexpr const char* kUntriedRemedy =
    "scripts/gpu-check tests the device and writes a report (docs/gpu-check.md)";
// What a library registers with LibTorch, before the number.
inline constexpr const char* kLibraryDeviceKind = "privateuseone";
// Names the file of that library, on the machine that has it.
inline constexpr const char* kDeviceLibraryVariable = "MOTLEY_DEVICE_LIBRARY";
// Whether the device has memory of its own, beside the machine's.
[[nodiscard]] bool has_own_memory(const std::string& device);
// Whether the machine's processor is free while the device computes: any but a "cpu".
[[nodiscard]] bool leaves_processor_free(std::string_view device);
// Whether the cluster has virtual devices.
[[nodiscard]] bool is_virtual(const Cluster& cluster);
// Whether it has real ones beside them. Such a cluster can be planned with, not run on.
[[nodiscard]] bool is_mixed(const Cluster& cluster);

// Beside every figure of virtual devices.
inline constexpr const char* kVirtualNotice =
    "virtual devices: computing is simulated by waiting, for the times of the cluster file";

// "here" or "by `ssh anna@laptop`": how commands are started on the machine.
[[nodiscard]] std::string starting_place(const Machine& machine);

// This machine alone with `devices` CPU devices of equal speed.
[[nodiscard]] Cluster local_cluster(int devices);
// This machine alone with the devices that it has, and with at least so many.
[[nodiscard]] Cluster automatic_cluster(int devices);

}  // namespace motley

// The facts that a worker finds on its machine for `motley doctor`, as a value and as an event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "protocol/device_facts.h"

namespace motley {

// An address that may reach the machine; fields as in NetworkInterface of
// comm/transport/network_interface.h.
struct AddressCandidate {
  std::string interface;
  std::string address;
  std::string kind;
  bool is_up = false;
  int mbps = 0;  // 0 = unknown

  friend bool operator==(const AddressCandidate&, const AddressCandidate&) = default;
};

// The route of the machine's system to a peer.
struct RouteFound {
  std::string to;    // the peer's address from the cluster file
  std::string from;  // its own source address; "" = no route

  friend bool operator==(const RouteFound&, const RouteFound&) = default;
};

struct MachineFacts {
  std::string version;                     // of Motley
  std::string build;                       // of motley-stage, as build_of(); "" = unknown
  std::string blas;                        // file of the matrix library; "" = unknown
  std::vector<std::string> transports;     // of that build, best first
  DevicesFound found;                      // devices
  double cores = 0;                        // usable, as usable_cores()
  int physical_cores = 0;                  // among those that the worker may run on
  std::int64_t memory_bytes = 0;           // available; 0 = unknown
  std::string computer;                    // as computer_id(); "" = unknown
  std::int64_t computer_memory_bytes = 0;  // available on the whole computer; 0 = unknown
  std::int64_t disk_bytes = 0;             // free on the run folder's disk; 0 = unknown
  double unix_s = 0;                       // its clock at the time of the report
  bool sees_mark_file = false;  // whether its run folder contains the launcher's mark file
  std::vector<AddressCandidate> candidates;
  std::vector<RouteFound> routes;

  friend bool operator==(const MachineFacts&, const MachineFacts&) = default;
};

[[nodiscard]] Json facts_to_json(const MachineFacts& facts);

// kPeer if it is not such an event, naming `source`.
[[nodiscard]] Result<MachineFacts> facts_from_json(const Json& json, const std::string& source);

}  // namespace motley

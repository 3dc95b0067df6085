// What a worker finds on its machine for `motley doctor`, as a value and as an event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "protocol/device_facts.h"

namespace motley {

// An address that others might reach the machine at; as NetworkInterface of
// comm/transport/network_interface.h.
struct AddressCandidate {
  std::string interface;
  std::string address;
  std::string kind;
  bool is_up = false;
  int mbps = 0;  // 0 = unknown

  friend bool operator==(const AddressCandidate&, const AddressCandidate&) = default;
};

// How the machine's system would send to a peer.
struct RouteFound {
  std::string to;    // the peer's address in the cluster file
  std::string from;  // the own address that it would use; "" = it has no way there

  friend bool operator==(const RouteFound&, const RouteFound&) = default;
};

struct MachineFacts {
  std::string version;  // of Motley
  std::string build;    // of motley-stage, as build_of(); "" = unknown
  std::string blas;     // file of the library that multiplies matrices; "" = unknown
  std::vector<std::string> transports;     // of that build, best first
  DevicesFound found;                      // what can compute there
  double cores = 0;                        // usable, as usable_cores()
  int physical_cores = 0;                  // of those that the worker may run on
  std::int64_t memory_bytes = 0;           // available; 0 = unknown
  std::string computer;                    // which it is, as computer_id(); "" = unknown
  std::int64_t computer_memory_bytes = 0;  // available on the whole of it; 0 = unknown
  std::int64_t disk_bytes = 0;             // free where the run folder is to be; 0 = unknown
  double unix_s = 0;                       // its clock when it said so
  bool sees_mark =
      false;  // whether the run folder there holds the mark that the launcher left here
  std::vector<AddressCandidate> candidates;
  std::vector<RouteFound> routes;

  friend bool operator==(const MachineFacts&, const MachineFacts&) = default;
};

[[nodiscard]] Json facts_to_json(const MachineFacts& facts);

// kPeer for what is no such event, naming `source`.
[[nodiscard]] Result<MachineFacts> facts_from_json(const Json& json, const std::string& source);

}  // namespace motley

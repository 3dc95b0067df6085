// This header answers which network interfaces this machine has, and which one a transport must
// use.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

// An address of this machine and the interface that holds it.
struct NetworkInterface {
  std::string name;
  std::string address;  // numeric IPv4 or IPv6
  bool is_up = false;
  // loopback | bridge (of containers or virtual machines) | wireless | wired | virtual (tunnels,
  // containers' own) | unknown, where the system does not tell
  std::string kind;
  int mbps = 0;  // of the medium; 0 = unknown
};

// Returns them in the order of the system; an interface with several addresses stands there with
// each. kPeer
// when the system does not tell.
[[nodiscard]] Result<std::vector<NetworkInterface>> network_interfaces();

// The name of the interface that holds a numeric IPv4 or IPv6 address; of the loopback interface
// for "". kPeer, listing what this machine has, when no interface holds the address.
[[nodiscard]] Result<std::string> interface_of(const std::string& address);

// The address of this machine from which the system would send to the numeric address `peer`; sends
// nothing. kPeer when it has no route there.
[[nodiscard]] Result<std::string> source_address_to(const std::string& peer);

}  // namespace motley

// The network interfaces of this machine, and the one that a transport must use.
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
  // interfaces inside containers) | unknown, if the system does not report it
  std::string kind;
  int mbps = 0;  // of the medium; 0 = unknown
};

// In the order of the system; an interface with several addresses is listed once per address. kPeer
// if the system does not report them.
[[nodiscard]] Result<std::vector<NetworkInterface>> network_interfaces();

// The name of the interface that holds a numeric IPv4 or IPv6 address; the loopback interface for
// "". kPeer, listing this machine's interfaces, if none holds the address.
[[nodiscard]] Result<std::string> interface_of(const std::string& address);

// This machine's source address of the route to the numeric address `peer`; sends nothing. kPeer if
// there is no route.
[[nodiscard]] Result<std::string> source_address_to(const std::string& peer);

}  // namespace motley

// Which network interface a transport must use.
#pragma once

#include <string>

#include "base/result.h"

namespace motley {

// The name of the interface that holds a numeric IPv4 or IPv6 address; of the loopback interface
// for "". kPeer, listing what this machine has, when no interface holds the address.
[[nodiscard]] Result<std::string> interface_of(const std::string& address);

// The address of this machine from which the system would send to the numeric address `peer`; sends
// nothing. kPeer when it has no route there.
[[nodiscard]] Result<std::string> source_address_to(const std::string& peer);

}  // namespace motley

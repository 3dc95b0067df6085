// What this machine is called and at which addresses others find it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"

namespace motley {

// Its host name and every address of its interfaces. Without the addresses where the system does
// not tell them.
[[nodiscard]] ThisMachine this_machine();

// The address at which the machines at `peers` (numeric) reach this one; without any of them that
// of the first interface which leads outside. kPeer when there is none.
[[nodiscard]] Result<std::string> own_address(const std::vector<std::string>& peers);

// Gives the machines whose address is this machine's name the numeric one.
[[nodiscard]] Result<void> make_addresses_numeric(Cluster& cluster, const ThisMachine& here);

// The numeric address of a host, IPv4 first. kConfig when it has none that other machines could
// use: Debian knows its own name as 127.0.1.1.
[[nodiscard]] Result<std::string> address_of_host(const std::string& host);

// "desktop here, oldbox by `ssh 192.168.1.11`"; "" where all machines are started here.
[[nodiscard]] std::string starting_places(const Cluster& cluster);

}  // namespace motley

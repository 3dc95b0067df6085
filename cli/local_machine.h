// This machine's name, and the addresses at which other machines reach it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"

namespace motley {

// The host name and all interface addresses; without the addresses if the system does not report
// them.
[[nodiscard]] LocalMachine local_machine();

// The name of this machine with its domain, where the system knows that; "" if it has no name.
[[nodiscard]] std::string full_host_name();

// The address at which the machines at `peers` (numeric) reach this one. Without peers, the address
// of the first interface that leads outside. kPeer if there is none.
[[nodiscard]] Result<std::string> own_address(const std::vector<std::string>& peers);

// All addresses of interfaces that lead outside, IPv4 first; the loopback address if there is none.
[[nodiscard]] std::vector<std::string> outside_addresses();

// Replaces this machine's name by its numeric address in the machines' addresses.
[[nodiscard]] Result<void> make_addresses_numeric(Cluster& cluster, const LocalMachine& here);

// The numeric address of a host, IPv4 first. kConfig if no address is usable by other machines:
// Debian resolves its own name to 127.0.1.1.
[[nodiscard]] Result<std::string> address_of_host(const std::string& host);

// "desktop here, oldbox by `ssh 192.168.1.11`"; "" if all machines are started locally.
[[nodiscard]] std::string starting_folders(const Cluster& cluster);

}  // namespace motley

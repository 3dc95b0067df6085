// Reads a cluster file: docs/formats/cluster.md.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

// The names of this machine that a cluster file may use.
struct LocalMachine {
  std::string name;                 // host name; "" = unknown
  std::set<std::string> addresses;  // numeric, in the system's notation
};

// Whether one file may contain real and simulated machines. If so, the simulated ones have no
// address, and their measurements are made here.
enum class Mixture { kRefused, kAllowed };

// Parses and checks a cluster file. A machine with neither 'ssh' nor 'shell' is local if its
// address is one of `here` or a loopback; otherwise it uses ssh. An address may be `here`'s name,
// and is not converted: the caller must make it numeric. kConfig with line and column.
[[nodiscard]] Result<Cluster> parse_cluster(std::string_view toml_text,
                                            const std::string& source,
                                            const LocalMachine& here = {},
                                            Mixture mixture = Mixture::kRefused);

}  // namespace motley

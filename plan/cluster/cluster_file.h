// Reads a cluster file: docs/formats/cluster.md.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

// How a cluster file may name the machine that reads it.
struct ThisMachine {
  std::string name;                 // host name; "" = unknown
  std::set<std::string> addresses;  // numeric, as the system writes them
};

// Whether real and virtual machines may stand in one file. Where they do, the virtual ones are
// imagined: they have no address, and what is measured of them is measured here.
enum class Mixture { kRefused, kAllowed };

// Parses and checks a cluster file. A machine with neither 'ssh' nor 'shell' is started here where
// its address is one of `here` or a loopback, else by ssh. An address may be `here`'s name, and
// then stays it: it is for the caller to make it numeric. kConfig with line and column.
[[nodiscard]] Result<Cluster> parse_cluster(std::string_view toml_text,
                                            const std::string& source,
                                            const ThisMachine& here = {},
                                            Mixture mixture = Mixture::kRefused);

}  // namespace motley

// Lists of hosts as schedulers write them. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace motley {

// More hosts than this are an error: a short text can describe a billion.
inline constexpr std::size_t kListedHostsMax = 4096;

// A name or an address, which no program takes for an option.
[[nodiscard]] bool is_host_name(std::string_view text);

// Slurm's notation: "gpu[01-03,7],head" is gpu01, gpu02, gpu03, gpu7 and head; several brackets in
// one name are combined. kConfig for a text that is none, or one of too many hosts.
[[nodiscard]] Result<std::vector<std::string>> expand_host_list(std::string_view text);

// Slurm's notation for a number of each host: "16(x2),8" is 16, 16 and 8. kConfig as above.
[[nodiscard]] Result<std::vector<int>> expand_counts(std::string_view text);

// A host file of mpirun, or of a batch system: one host a line, perhaps with other words behind it
// ("box slots=4", "box:4"), "#" begins a comment. Each host once, in the order of its first line.
// kConfig for a host that is no word, or too many of them.
[[nodiscard]] Result<std::vector<std::string>> hosts_of_file(std::string_view text);

}  // namespace motley

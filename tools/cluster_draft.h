// The files that `motley init` writes, as text. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

struct DraftMachine {
  std::string name;
  std::string address;  // numeric; "" = it is the only machine
  std::string ssh;      // destination; "" = the address, or none where the file is read
};

// "box=anna@10.0.0.2" as name and destination. kUsage for a name that a cluster file does not take
// or a destination that ssh would misunderstand.
[[nodiscard]] Result<DraftMachine> parse_draft_machine(const std::string& text);

// A destination without its user: "10.0.0.2", "box.local".
[[nodiscard]] std::string host_of(const std::string& destination);

// A name that a cluster file takes, of any text.
[[nodiscard]] std::string to_machine_name(const std::string& text);

[[nodiscard]] std::string cluster_draft(const std::vector<DraftMachine>& machines);

// A small GPT on `data`: a file or folder of text, a .bin of tokens, or, for "", synthetic tokens.
// kConfig where the two cannot stand in a configuration.
[[nodiscard]] Result<std::string> config_draft(const std::string& data, const std::string& run_dir);

}  // namespace motley

// The texts of the files that `motley init` writes. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

struct DraftMachine {
  std::string name;
  std::string address;  // numeric; "" = the only machine
  std::string ssh;      // destination; "" = same as the address, or the local machine
  std::vector<std::string> shell = {};  // in place of ssh: the prefix of a command there
  double memory_gib = 0;                // 0 = the free memory
};

// Parses "box=anna@10.0.0.2" into name and destination. kUsage for an invalid machine name, or for
// a destination that ssh would misinterpret.
[[nodiscard]] Result<DraftMachine> parse_draft_machine(const std::string& text);

// A destination without its user: "10.0.0.2", "box.local".
[[nodiscard]] std::string host_of(const std::string& destination);

// A valid machine name made from any text.
[[nodiscard]] std::string to_machine_name(const std::string& text);

[[nodiscard]] std::string cluster_draft(const std::vector<DraftMachine>& machines);

// A configuration for a small GPT on `data`: a file or folder of text, a .bin of tokens, or, for
// "", synthetic tokens. kConfig if the two paths cannot be written in a configuration.
[[nodiscard]] Result<std::string> config_draft(const std::string& data, const std::string& run_dir);

}  // namespace motley

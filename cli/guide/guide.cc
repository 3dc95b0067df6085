#include "cli/guide/guide.h"

#include "cli/command.h"
#include "run_config/config_io.h"

namespace motley {

std::vector<CommandSpec> all_specs() {
  std::vector<CommandSpec> specs;
  for (Command& command : all_commands()) specs.push_back(std::move(command.spec));
  return specs;
}

CompletionTable completion_table() {
  CompletionTable table{all_specs(), {}};
  for (const ConfigKey& key : config_keys()) table.keys.push_back(key.name);
  return table;
}

}  // namespace motley

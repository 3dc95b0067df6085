#include "cli/guide/guide.h"

#include "cli/command.h"

namespace motley {

std::vector<CommandSpec> all_specs() {
  std::vector<CommandSpec> specs;
  for (Command& command : all_commands()) specs.push_back(std::move(command.spec));
  return specs;
}

}  // namespace motley

// motley config: every configuration key, its value and where it comes from.
#include <fmt/format.h>

#include <cstdio>

#include "base/json.h"
#include "tools/command.h"
#include "tools/inputs.h"

namespace motley {
namespace {

Result<void> show_config(const Arguments& arguments) {
  MOTLEY_ASSIGN(const ResolvedConfig resolved, read_config(arguments.operand(0), arguments));
  MOTLEY_TRY(validate_config(resolved.config));
  const auto origin = [&](const std::string& name) {
    const auto it = resolved.origins.find(name);
    return it == resolved.origins.end() ? std::string("default") : it->second;
  };
  if (arguments.has("json")) {
    Json keys = Json::object();
    for (const ConfigKey& key : config_keys()) {
      keys[key.name] = {{"value", config_value(resolved.config, key.name)},
                        {"origin", origin(key.name)}};
    }
    fmt::print("{}\n", keys.dump(2));
    return {};
  }
  for (const ConfigKey& key : config_keys()) {
    fmt::print("{:<26} {:<28} {:<24} {}\n", key.name, config_value(resolved.config, key.name),
               origin(key.name), key.help);
  }
  return {};
}

}  // namespace

Command config_command() {
  CommandSpec spec{"config",
                   "show every key, its value and where it comes from",
                   {"CONFIG"},
                   {set_option(), json_option()},
                   "Precedence: command line, then environment (MOTLEY_TRAIN_LR sets train.lr),\n"
                   "then the file, then the default.\n"};
  return {spec, show_config};
}

}  // namespace motley

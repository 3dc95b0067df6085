// Reads Config from TOML, environment and command line, and writes it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "run_config/config.h"

namespace motley {

// Whether a text can be a value: config.toml and messages are UTF-8, and a value is one line.
[[nodiscard]] bool is_plain_text(const std::string& text);

struct ResolvedConfig {
  Config config;
  std::map<std::string, std::string>
      origins;  // "train.lr" -> "default", "gpt.toml:12:3", "MOTLEY_TRAIN_LR", "--set"
};

// Whether the key was left at its default. Without known origins: false.
[[nodiscard]] bool is_default(const std::map<std::string, std::string>& origins,
                              const std::string& key);

// The source of a value, as the end of a sentence about its key: "gpt.toml:12:3", "given by --set
// train.lr", "given by MOTLEY_TRAIN_LR".
[[nodiscard]] std::string key_origin_text(const std::string& origin, const std::string& key);

using Overrides =
    std::vector<std::pair<std::string, std::string>>;  // ("train.lr", "1e-3"), in order

// Precedence: overrides > environment > TOML > defaults. `source` names the TOML text in errors;
// `environment` has MOTLEY_* names (MOTLEY_TRAIN_LR sets train.lr; others are ignored unless they
// start with a section's name, which makes a misspelt key an error). On the command line and in the
// environment a value is TOML, or bare text for a key of type string. kConfig for an unknown key
// (with "did you mean"), a wrong type, a value out of range or an invalid combination of keys
// (validate_config), with line and column. Relative data paths and run.dir are not resolved.
[[nodiscard]] Result<ResolvedConfig> resolve_config(
    std::string_view toml_text,
    const std::string& source,
    const std::map<std::string, std::string>& environment,
    const Overrides& overrides);

// Checks combinations of keys: global_batch divisible by micro_batch, heads dividing width, ….
[[nodiscard]] Result<void> validate_config(const Config& config);

// TOML text that resolves to the same config; floats read back to the same bits.
[[nodiscard]] std::string config_to_toml(const Config& config);

// For messages between programs. config_from_json checks like resolve_config and requires every
// key: a default in place of a missing one could train something else than the sender intended.
// kConfig.
[[nodiscard]] Json config_to_json(const Config& config);
[[nodiscard]] Result<Config> config_from_json(const Json& json, const std::string& source);
// The same for saved configurations, perhaps of an earlier version: keys unknown to that version
// get their defaults, which preserve its behaviour.
[[nodiscard]] Result<Config> saved_config_from_json(const Json& json, const std::string& source);

struct ConfigKey {
  std::string name;  // "train.lr"
  std::string type;  // "integer", "number", "boolean", "string", "list of integers", "… numbers",
                     // "… strings"
  std::string help;  // one line
  std::string fallback;              // the default as TOML
  std::vector<std::string> choices;  // its only values, of a list those of an item; empty = others
};

// All keys in the order of the documentation.
[[nodiscard]] std::vector<ConfigKey> config_keys();

// The value of one key as TOML, e.g. for `motley config`. REQUIRES: a key of config_keys().
[[nodiscard]] std::string config_value(const Config& config, const std::string& key);

}  // namespace motley

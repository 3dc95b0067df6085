#include "run_config/config_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/json.h"
#include "base/toml.h"
#include "run_config/config_keys.h"
#include "run_config/config_validate.h"
#include "run_config/config_value.h"
#include "run_config/schedule_length.h"

namespace motley {
namespace {

constexpr const char* kEnvironmentPrefix = "MOTLEY_";
constexpr const char* kDefault = "default";
constexpr const char* kSetOption = "--set";

std::string list_keys_remedy() {
  return "`motley config` lists every key";
}

Error unknown_key(const std::string& key, const std::string& where) {
  const std::string suggestion = suggest_key(key);
  return {ErrorCode::kConfig, fmt::format("unknown key {}, {}", excerpt(key), where), "",
          suggestion.empty() ? list_keys_remedy() : fmt::format("did you mean {}?", suggestion)};
}

Error unknown_section(const std::string& name, const std::string& where) {
  // If a key has that name, a missing section is the more likely mistake.
  const std::vector<std::string> sections = config_sections();
  std::string suggestion = closest_word(name, sections);
  if (!suggestion.empty()) suggestion = fmt::format("[{}]", suggestion);
  if (suggestion.empty()) suggestion = suggest_key(name);
  return {ErrorCode::kConfig, fmt::format("unknown section or key {}, {}", excerpt(name), where),
          "",
          suggestion.empty() ? list_keys_remedy() : fmt::format("did you mean {}?", suggestion)};
}

// Called for each value found, with its position.
using Visit = std::function<Result<void>(const ConfigEntry&, const Json&, const std::string&)>;
using Where = std::function<std::string(const std::string&)>;

// Walks {"section": {"word": value}} and rejects unknown keys.
Result<void> visit_values(const Json& root, const Where& where, const Visit& visit) {
  const std::vector<std::string> sections = config_sections();
  for (const auto& [section, values] : root.items()) {
    if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
      return unknown_section(section, where(section));
    }
    if (!values.is_object()) {
      return Error{ErrorCode::kConfig,
                   fmt::format("{} must be a section, {}", section, where(section)), "",
                   fmt::format("write its keys below a line [{}]", section)};
    }
    for (const auto& [word, value] : values.items()) {
      const std::string name = section + "." + word;
      const ConfigEntry* entry = find_entry(name);
      if (entry == nullptr) return unknown_key(name, where(name));
      MOTLEY_TRY(visit(*entry, value, where(name)));
    }
  }
  return {};
}

std::string environment_name(const std::string& key) {
  std::string name = kEnvironmentPrefix + key;
  for (char& c : name) {
    if (c == '.') c = '_';
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

const ConfigEntry* find_environment_entry(const std::string& name) {
  for (const ConfigEntry& entry : config_entries()) {
    if (environment_name(entry.name) == name) return &entry;
  }
  return nullptr;
}

// The key that a MOTLEY_ name seems to mean ("train.leraning_rate"), or "" if it does not begin
// with a section's name and so belongs to something else.
std::string key_meant_by(const std::string& environment) {
  for (const std::string& section : config_sections()) {
    const std::string prefix = environment_name(section) + "_";
    if (!environment.starts_with(prefix)) continue;
    std::string word = environment.substr(prefix.size());
    for (char& c : word) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return section + "." + word;
  }
  return "";
}

// The precedence of a source.
int rank_of(const std::string& origin) {
  if (origin == kDefault) return 0;
  if (origin == kSetOption) return 3;
  return origin.find(':') == std::string::npos ? 2 : 1;  // a variable; a place in a file
}

// Applies sources one after the other, so that a later source wins, and records each value's
// source.
class Resolver {
 public:
  Resolver() {
    for (const ConfigEntry& entry : config_entries()) resolved_.origins[entry.name] = kDefault;
  }

  Result<void> apply_toml(std::string_view text, const std::string& source) {
    MOTLEY_ASSIGN(const TomlDocument document, parse_toml(text, source));
    return visit_values(
        document.root, [&](const std::string& path) { return document.where(path); },
        [&](const ConfigEntry& entry, const Json& value, const std::string& where) {
          resolved_.origins[entry.name] = where;
          return set_value(resolved_.config, entry, value, where);
        });
  }

  Result<void> apply_environment(const std::map<std::string, std::string>& environment) {
    for (const auto& [name, text] : environment) {
      if (const ConfigEntry* entry = find_environment_entry(name)) {
        MOTLEY_TRY(apply_text(*entry, text, name));
      } else if (const std::string key = key_meant_by(name); !key.empty()) {
        return unknown_variable(name, key);
      }
    }
    return {};
  }

  Result<void> apply_overrides(const Overrides& overrides) {
    for (const auto& [key, text] : overrides) {
      const ConfigEntry* entry = find_entry(key);
      if (entry == nullptr) return unknown_key(key, fmt::format("given by {}", kSetOption));
      MOTLEY_TRY(apply_text(*entry, text, kSetOption));
    }
    return {};
  }

  Result<ResolvedConfig> finish() && {
    TrainConfig& train = resolved_.config.train;
    MOTLEY_TRY(choose_length(train));
    if (resolved_.origins["train.warmup_steps"] == kDefault && train.steps > 0) {
      train.warmup_steps = default_warmup_steps(train);
    }
    if (const auto conflict = find_conflict(resolved_.config)) {
      return Error{ErrorCode::kConfig,
                   fmt::format("{}, {}", conflict->problem, place_of(*conflict)), conflict->cause,
                   conflict->remedy};
    }
    return std::move(resolved_);
  }

 private:
  // Of train.steps and train.epochs, the one of the later source counts. A file may contain both:
  // the configuration of a run does, whose steps are those of its epochs (run_config/epochs.h).
  Result<void> choose_length(TrainConfig& train) {
    if (train.epochs <= 0) return {};
    const int steps_rank = rank_of(resolved_.origins["train.steps"]);
    const std::string& epochs_origin = resolved_.origins["train.epochs"];
    const int epochs_rank = rank_of(epochs_origin);
    if (epochs_rank > steps_rank) {
      train.steps = 0;
    } else if (steps_rank > epochs_rank && train.steps > 0) {
      train.epochs = 0;
    } else if (epochs_rank > 1 && train.steps > 0) {
      return Error{ErrorCode::kConfig,
                   fmt::format("train.epochs and train.steps exclude each other, {}",
                               key_origin_text(epochs_origin, "train.epochs")),
                   "both give the length of the run", "leave one of them out"};
    }
    return {};
  }

  // The position where the user set one of the two.
  [[nodiscard]] std::string place_of(const Conflict& conflict) const {
    const bool is_other = resolved_.origins.at(conflict.key) == kDefault && !conflict.other.empty();
    const std::string& key = is_other ? conflict.other : conflict.key;
    return key_origin_text(resolved_.origins.at(key), key);
  }

  static Error unknown_variable(const std::string& name, const std::string& key) {
    const std::string suggestion = suggest_key(key);
    return {ErrorCode::kConfig,
            fmt::format("unknown key {}, environment variable {}", excerpt(key), excerpt(name)),
            "names that start with a section's name set a key",
            suggestion.empty() ? list_keys_remedy()
                               : fmt::format("did you mean {}?", environment_name(suggestion))};
  }

  Result<void> apply_text(const ConfigEntry& entry,
                          const std::string& text,
                          const std::string& where) {
    resolved_.origins[entry.name] = where;
    return set_value_from_text(resolved_.config, entry, text, key_origin_text(where, entry.name));
  }

  ResolvedConfig resolved_;
};

}  // namespace

bool is_default(const std::map<std::string, std::string>& origins, const std::string& key) {
  const auto origin = origins.find(key);
  return origin != origins.end() && origin->second == kDefault;
}

std::string key_origin_text(const std::string& origin, const std::string& key) {
  if (origin == kSetOption) return fmt::format("given by {} {}", origin, key);
  const bool is_file = origin.find(':') != std::string::npos;
  return is_file ? origin : fmt::format("given by {}", origin);
}

Result<ResolvedConfig> resolve_config(std::string_view toml_text,
                                      const std::string& source,
                                      const std::map<std::string, std::string>& environment,
                                      const Overrides& overrides) {
  Resolver resolver;
  MOTLEY_TRY(resolver.apply_toml(toml_text, source));
  MOTLEY_TRY(resolver.apply_environment(environment));
  MOTLEY_TRY(resolver.apply_overrides(overrides));
  return std::move(resolver).finish();
}

std::string config_to_toml(const Config& config) {
  std::string text;
  std::string_view section;
  for (const ConfigEntry& entry : config_entries()) {
    if (entry.section() != section) {
      text += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", entry.section());
      section = entry.section();
    }
    text += fmt::format("{} = {}\n", entry.word(), value_to_toml(config, entry));
  }
  return text;
}

Json config_to_json(const Config& config) {
  Json root = Json::object();
  for (const ConfigEntry& entry : config_entries()) {
    root[std::string(entry.section())][std::string(entry.word())] = get_value(config, entry);
  }
  return root;
}

namespace {

struct CountedConfig {
  Config config;
  std::size_t keys = 0;  // found
};

Result<CountedConfig> counted_from_json(const Json& json, const std::string& source) {
  if (!json.is_object()) {
    return Error{ErrorCode::kConfig, fmt::format("not a configuration, {}", source),
                 "a JSON object was expected", ""};
  }
  CountedConfig counted;
  MOTLEY_TRY(visit_values(
      json, [&](const std::string&) { return source; },
      [&](const ConfigEntry& entry, const Json& value, const std::string& where) {
        ++counted.keys;
        return set_value(counted.config, entry, value, where);
      }));
  if (Result<void> valid = validate_config(counted.config); !valid) {
    return with_context(std::move(valid).error(), source);
  }
  return counted;
}

}  // namespace

Result<Config> config_from_json(const Json& json, const std::string& source) {
  MOTLEY_ASSIGN(CountedConfig counted, counted_from_json(json, source));
  // A default in place of a missing key could train something else than the sender intended.
  if (counted.keys != config_entries().size()) {
    return Error{ErrorCode::kConfig, fmt::format("incomplete configuration, {}", source),
                 fmt::format("{} of {} keys are present", counted.keys, config_entries().size()),
                 "use the same version of Motley on every machine"};
  }
  return std::move(counted.config);
}

Result<Config> saved_config_from_json(const Json& json, const std::string& source) {
  MOTLEY_ASSIGN(CountedConfig counted, counted_from_json(json, source));
  return std::move(counted.config);
}

std::vector<ConfigKey> config_keys() {
  const Config defaults;
  std::vector<ConfigKey> keys;
  for (const ConfigEntry& entry : config_entries()) {
    keys.push_back({entry.name, type_name(entry), entry.help, value_to_toml(defaults, entry),
                    choices_of(entry)});
  }
  return keys;
}

std::string config_value(const Config& config, const std::string& key) {
  const ConfigEntry* entry = find_entry(key);
  MOTLEY_CHECK(entry != nullptr, "no configuration key is called '{}'", key);
  return value_to_toml(config, *entry);
}

}  // namespace motley

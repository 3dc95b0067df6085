// motley config: all configuration keys, their values and origins.
#include <fmt/format.h>

#include <cstdio>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "models/spec/hf_config.h"
#include "models/spec/initial_weights.h"

namespace motley {
namespace {

// The [model] section for these weights, as the start of a configuration.
Result<void> show_model_of(const std::filesystem::path& weights, bool json) {
  MOTLEY_TRY(check_exists(weights));
  if (!is_plain_text(weights.string())) {
    return Error{ErrorCode::kUsage, "--from must be one line of UTF-8 text",
                 fmt::format("it is '{}'", excerpt(weights.string())), "rename the folder"};
  }
  MOTLEY_ASSIGN(const auto reader, CheckpointReader::open(weights));
  MOTLEY_ASSIGN(const WeightsOutline outline, reader.outline());
  if (outline.config.is_null()) {
    return Error{ErrorCode::kConfig,
                 fmt::format("no config.json beside the weights in {}", weights.string()),
                 "the weights do not determine the number of attention heads",
                 "copy the model's config.json there, or write the [model] section by hand"};
  }
  Config config;
  MOTLEY_ASSIGN(config.model, model_of_huggingface(outline.config, outline.source));
  MOTLEY_TRY(check_weights(config.model, {}, outline.tensors, outline.config, outline.source));
  config.model.init_from = weights.string();
  if (json) {
    fmt::print("{}\n", Json{{"model", config_to_json(config)["model"]}}.dump(2));
    return {};
  }
  constexpr std::string_view kSection = "model.";
  fmt::print("# read from {}\n[model]\n", outline.source);
  for (const ConfigKey& key : config_keys()) {
    if (!key.name.starts_with(kSection)) continue;
    fmt::print("{} = {}\n", key.name.substr(kSection.size()), config_value(config, key.name));
  }
  return {};
}

Result<void> show_config(const Arguments& arguments) {
  if (arguments.has("from") && arguments.has("set")) {
    return Error{ErrorCode::kUsage, "--from and --set exclude each other",
                 "--from prints the section that the weights need", "leave one of them out"};
  }
  if (arguments.has("from")) return show_model_of(arguments.value("from"), arguments.has("json"));
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
  CommandSpec spec{
      "config",
      "show every key with its value and source",
      {"CONFIG"},
      {set_option(),
       {"from", "FOLDER", "print the [model] section for these weights instead"},
       json_option()},
      "Precedence: command line, then environment (MOTLEY_TRAIN_LR sets train.lr),\n"
      "then the file, then the default.\n\n"
      "With --from FOLDER and no CONFIG it reads the config.json of a folder of weights,\n"
      "a checkpoint or a Hugging Face model, checks that the weights are of that model,\n"
      "and prints the [model] section for training from them.\n\n"
      "Examples\n"
      "  motley config gpt.toml --set train.lr=1e-3\n"
      "  motley config --from gpt2 > gpt2.toml\n",
      /*instead=*/"from"};
  return {spec, show_config};
}

}  // namespace motley

// motley data check.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/json.h"
#include "base/process/progress_line.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "data/inspect/data_facts.h"
#include "data/inspect/recognise.h"
#include "models/spec/model_spec.h"

namespace motley {
namespace {

std::string grouped(std::uint64_t count) {
  std::string text = fmt::format("{}", count);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

// "6,000 samples of [28, 28] uint8, from 0 to 255".
std::string column_text(const ColumnFacts& column) {
  const std::string shape = column.shape.empty() ? "" : shape_text(column.shape) + " ";
  std::string text =
      fmt::format("{} of {}{}", grouped(column.samples), shape, element_name(column.type));
  text += column.values == column.not_finite
              ? ", without a finite value"
              : fmt::format(", from {:g} to {:g}", column.lowest, column.highest);
  if (column.classes.empty()) return text;
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] =
      std::minmax_element(column.classes.begin(), column.classes.end(), by_count);
  return text + fmt::format("; {} classes of {} to {} samples", column.classes.size(),
                            grouped(least->second), grouped(most->second));
}

std::string line(const std::string& label, const std::string& text) {
  return fmt::format("{:<18} {}\n", label, text);
}

std::string to_text(const DataFacts& facts, const std::optional<TrainingFacts>& training) {
  std::string text = line("kind", facts.kind);
  if (!facts.path.empty()) text += line("path", facts.path);
  if (const auto& tokens = facts.tokens) {
    text += line("tokens", fmt::format("{} of {}, from {} to {}", grouped(tokens->tokens),
                                       tokens->dtype, tokens->range.lowest, tokens->range.highest));
    if (tokens->files > 1) text += line("files", grouped(tokens->files));
  }
  for (const ColumnFacts& column : facts.columns) text += line(column.role, column_text(column));
  if (training) {
    text += line("samples",
                 fmt::format("{} for training, {} held out", grouped(training->train_samples),
                             grouped(training->eval_samples)));
    text += line("epochs", fmt::format("{:.3g}", training->epochs));
  }
  for (const std::string& remark : facts.remarks) text += fmt::format("warning: {}\n", remark);
  if (facts.remarks.empty()) text += "nothing suspicious was found\n";
  return text;
}

Json to_json(const ColumnFacts& column) {
  Json json{{"role", column.role},
            {"dtype", std::string(element_name(column.type))},
            {"shape", column.shape},
            {"samples", column.samples},
            {"lowest", column.lowest},
            {"highest", column.highest},
            {"not_finite", column.not_finite}};
  if (column.values == column.not_finite) json["lowest"] = json["highest"] = nullptr;
  if (!column.classes.empty()) json["classes"] = column.classes.size();
  return json;
}

Json to_json(const DataFacts& facts, const std::optional<TrainingFacts>& training) {
  Json json{{"kind", facts.kind}, {"path", facts.path}, {"warnings", facts.remarks}};
  if (const auto& tokens = facts.tokens) {
    json["tokens"] = {{"dtype", tokens->dtype},
                      {"files", tokens->files},
                      {"count", tokens->tokens},
                      {"lowest", tokens->range.lowest},
                      {"highest", tokens->range.highest}};
  }
  if (!facts.columns.empty()) {
    json["columns"] = Json::array();
    for (const ColumnFacts& column : facts.columns) json["columns"].push_back(to_json(column));
  }
  if (training) {
    json["train_samples"] = training->train_samples;
    json["eval_samples"] = training->eval_samples;
    json["epochs"] = training->epochs;
    json["hash"] = training->hash;
  }
  return json;
}

void print(const Arguments& arguments,
           const DataFacts& facts,
           const std::optional<TrainingFacts>& training) {
  const std::string text =
      arguments.has("json") ? to_json(facts, training).dump(2) + "\n" : to_text(facts, training);
  std::fputs(text.c_str(), stdout);
}

Result<void> check_config(const Arguments& arguments) {
  MOTLEY_ASSIGN(const ResolvedConfig resolved, read_config(arguments.operand(0), arguments));
  MOTLEY_TRY(validate_config(resolved.config));
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(resolved.config.model));
  ProgressCounter work;
  ProgressLine progress("checking the data");
  auto checked = inspect_data(resolved.config, model.sample, work);
  progress.clear();
  if (!checked.ok()) {
    Error error = checked.error();
    if (error.key.empty()) error = with_key(with_context(error, "data.path"), "data.path");
    return with_key_position(error, resolved);
  }
  print(arguments, checked->facts, checked->training);
  return {};
}

Result<void> check(const Arguments& arguments) {
  const std::filesystem::path path = arguments.operand(0);
  std::error_code code;
  if (path.extension() == ".toml" && !std::filesystem::is_directory(path, code)) {
    return check_config(arguments);
  }
  if (arguments.has("set")) {
    return Error{ErrorCode::kUsage, "--set needs a configuration",
                 fmt::format("{} is no .toml file", path.string()), "name a configuration"};
  }
  DataConfig data;
  data.path = path.string();
  MOTLEY_ASSIGN(data.kind, recognise_data(path));
  ProgressCounter work;
  ProgressLine progress("checking the data");
  auto facts = inspect_data(data, work);
  progress.clear();
  if (!facts.ok()) return facts.error();
  print(arguments, *facts, std::nullopt);
  return {};
}

}  // namespace

std::vector<Command> data_commands() {
  return {
      {{"data check",
        "check training data, before a training",
        {"PATH"},
        {set_option(), json_option()},
        "PATH is a file or a folder, the kind of which is recognised. Prints what it holds: kind,\n"
        "dtype, range, number of samples and classes, what is left out, and what is suspicious:\n"
        "targets equal to inputs, a single class, NaN, held-out samples among those for training.\n"
        "\n"
        "PATH may also be a configuration, a .toml file. This makes all checks of a training with\n"
        "its model: tokens and labels within range, shapes, enough samples. It also prints the\n"
        "numbers of samples for training and evaluation, and how many epochs the training has.\n\n"
        "Exit status: 0 if the data is usable, with warnings or without, 8 if it is not, 3 if the\n"
        "path does not exist or the configuration is invalid.\n\n"
        "Examples\n"
        "  motley data check fineweb10B/\n"
        "  motley data check gpt.toml --set data.path=train.bin\n"},
       check},
  };
}

}  // namespace motley

// motley package show | verify.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/process/progress_line.h"
#include "base/text/text_table.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "models/package/argument_reader.h"
#include "models/package/package.h"
#include "models/spec/model_spec.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

Result<ModelSpec> described(const std::string& path) {
  ModelConfig config;
  config.kind = "package";
  config.path = path;
  return describe_model(config);
}

// `limit`: of integers; nullopt: without one.
std::string tensor_text(const TensorSpec& tensor, std::optional<std::int64_t> limit) {
  const bool is_integer = tensor.type == Dtype::kInt64;
  const bool is_one = tensor.shape.empty();
  const std::string below = is_integer && limit ? fmt::format(" below {}", *limit) : std::string();
  if (tensor.type == Dtype::kBool && is_one) return "a truth value";
  if (is_one) return is_integer ? "an integer" + below : "a number";
  const char* const type = is_integer                    ? "integers"
                           : tensor.type == Dtype::kBool ? "truth values"
                                                         : "numbers";
  return fmt::format("{} [{}]{}", type, fmt::join(tensor.shape, ", "), below);
}

// "numbers [1, 8, 8]", or "input_ids: integers [16] below 100, mask: truth values [16]".
std::string inputs_text(const std::vector<SampleInput>& inputs) {
  std::vector<std::string> texts;
  for (const SampleInput& input : inputs) {
    const std::string tensor = tensor_text(input.tensor, input.limit);
    texts.push_back(input.name.empty() ? tensor : fmt::format("{}: {}", input.name, tensor));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// "[16, 64] and int64 [16]": tensors with a gradient, then exact ones.
std::string outputs_text(const LayerSpec& layer) {
  std::vector<std::string> texts;
  for (const auto& shape : layer.outputs)
    texts.push_back(fmt::format("[{}]", fmt::join(shape, ", ")));
  for (const TensorSpec& exact : layer.exact_outputs) {
    texts.push_back(fmt::format("{} [{}]", dtype_name(exact.type), fmt::join(exact.shape, ", ")));
  }
  return texts.empty() ? "the loss" : fmt::format("{}", fmt::join(texts, " and "));
}

std::set<std::string> operations_of(const Package& package) {
  std::set<std::string> operations;
  for (const LayerGraph& layer : package.graphs) {
    for (const Graph* graph :
         {&layer.forward, &layer.input_part, &layer.weight_part, &layer.evaluate}) {
      for (const Node& node : graph->nodes) operations.emplace(node.operation);
    }
  }
  return operations;
}

// "" if all values are trained.
std::string constants_text(const ModelSpec& model) {
  if (model.constant_values() == 0) return "";
  return fmt::format(", and {} frozen values ({})", count_text(model.constant_values()),
                     bytes_text(static_cast<double>(model.constant_bytes())));
}

std::string to_text(const ModelSpec& model) {
  const Package& package = *model.package;
  std::vector<TextRow> rows = {{"layer", "output", "parameters", "multiply-adds", "graph"}};
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    rows.push_back({layer.name, outputs_text(layer), count_text(layer.parameter_count()),
                    count_text(static_cast<std::int64_t>(layer.forward_flops_per_sample / 2)),
                    fmt::format("{}", package.layers[l].graph)});
  }
  return fmt::format(
      "{}, by {}\n\ninput       {}\ntarget      {}\nparameters  {}{}\noperations  {} kinds in {} "
      "graphs of layers\n"
      "hash        {}\n\n{}",
      package.name, package.made_by, inputs_text(package.inputs),
      tensor_text(package.target, package.target_limit), count_text(model.parameter_count()),
      constants_text(model), operations_of(package).size(), package.graphs.size(), package.hash,
      aligned_table(rows));
}

Json to_json(const ModelSpec& model) {
  const Package& package = *model.package;
  Json layers = Json::array();
  for (const LayerSpec& layer : model.layers) {
    Json exact = Json::array();
    for (const TensorSpec& output : layer.exact_outputs) {
      exact.push_back({{"type", std::string(dtype_name(output.type))}, {"shape", output.shape}});
    }
    layers.push_back({{"name", layer.name},
                      {"outputs", layer.outputs},
                      {"exact_outputs", std::move(exact)},
                      {"parameters", layer.parameter_count()},
                      {"flops_per_sample", layer.forward_flops_per_sample}});
  }
  return {{"name", package.name},
          {"made_by", package.made_by},
          {"hash", package.hash},
          {"parameters", model.parameter_count()},
          {"constant_bytes", model.constant_bytes()},
          {"operations", operations_of(package)},
          {"layers", std::move(layers)}};
}

Result<void> show(const Arguments& arguments) {
  MOTLEY_ASSIGN(const ModelSpec model, described(arguments.operand(0)));
  std::fputs(
      arguments.has("json") ? (to_json(model).dump(2) + "\n").c_str() : to_text(model).c_str(),
      stdout);
  return {};
}

Result<void> verify(const Arguments& arguments) {
  MOTLEY_ASSIGN(const ModelSpec model, described(arguments.operand(0)));
  ProgressLine line("verifying the weights");
  MOTLEY_TRY(verify_package(*model.package));
  line.clear();
  MOTLEY_ASSIGN(const std::string missing, model.missing_references());
  const double megabytes = static_cast<double>(model.package->weights.bytes) / 1e6;
  if (arguments.has("json")) {
    fmt::print("{}\n",
               Json{{"hash", model.package->hash}, {"sound", true}, {"referenced", missing.empty()}}
                   .dump());
  } else {
    fmt::print("intact: {} layers, {:.1f} MB of weights as exported\n", model.layers.size(),
               megabytes);
    fmt::print("{}\n", missing.empty() ? "each layer has a reference for comparison on the machines"
                                       : missing);
  }
  return {};
}

}  // namespace

std::vector<Command> package_commands() {
  return {
      {{"package show",
        "show the content of a package exported from PyTorch",
        {"PATH"},
        {json_option()},
        "PATH is a folder written by Python's motley.export (docs/python.md). Checks it as a\n"
        "run would and prints its layers, between which a plan may cut.\n"},
       show},
      {{"package verify",
        "verify every byte of a package by its hashes",
        {"PATH"},
        {json_option()},
        "Also reports whether layers have references, with which machines compare their results\n"
        "before training. Exit status 3 if the description is invalid or needs an operation that\n"
        "is not allowed, 7 if a file is missing, truncated or changed.\n"},
       verify},
  };
}

}  // namespace motley

// Fixtures for the tests of `motley ckpt`: the commands as from a shell, saved runs, and folders
// in Hugging Face's format.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "base/philox.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/convert/float_format.h"
#include "checkpoint/manifest.h"
#include "cli/command.h"
#include "models/spec/hf_config.h"
#include "models/spec/model_spec.h"
#include "run_config/config_io.h"
#include "tests/checkpoint/fixture.h"

namespace motley::testing {

struct Said {
  int status = 0;
  std::string out;
  std::string err;
};

// `words` begin with the command's second word: {"export", "runs/gpt", "-o", "out"}.
inline Said ckpt(std::vector<std::string> words) {
  const std::string name = "ckpt " + words.front();
  words.erase(words.begin());
  for (const Command& command : checkpoint_commands()) {
    if (command.spec.name != name) continue;
    ::testing::internal::CaptureStdout();
    const auto arguments = parse_arguments(command.spec, words);
    const Result<void> done = arguments.ok() ? command.run(*arguments) : arguments.error();
    Said said{.out = ::testing::internal::GetCapturedStdout()};
    if (!done.ok()) {
      said.status = static_cast<int>(done.error().code);
      said.err = describe(done.error());
    }
    return said;
  }
  ADD_FAILURE() << "no command " << name;
  return {};
}

inline Config small_config() {
  Config config;
  config.model.layers = 2;
  config.model.width = 32;
  config.model.heads = 4;
  config.model.context = 16;
  config.model.vocab = 64;
  return config;
}

inline std::vector<ParameterSpec> parameters_of(const ModelSpec& model) {
  std::vector<ParameterSpec> parameters;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.tied_use) parameters.push_back(parameter);
    }
  }
  return parameters;
}

// Values of a tensor as a function of its name, with magnitudes typical of parameters.
inline std::vector<float> values_of(const std::string& name, std::size_t count, int version) {
  std::vector<float> values(count);
  const std::uint64_t key = hash64(name) + static_cast<std::uint64_t>(version);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = to_unit_float(philox4x32(key, 0, i)[0]) - 0.5F;
  }
  return values;
}

// Saves a checkpoint of a run in `run`, written by `ranks` ranks; returns its folder. `machines`:
// the machine of each rank, for machine-local folders.
inline std::filesystem::path save_run(const std::filesystem::path& run,
                                      const Config& config,
                                      std::int64_t step,
                                      int ranks,
                                      int version = 1,
                                      const std::vector<std::string>& machines = {}) {
  const ModelSpec model = *describe_model(config.model);
  const std::vector<ParameterSpec> parameters = parameters_of(model);
  std::vector<Shard> shards;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<OwnedTensor> own;
    std::vector<OwnedTensor> moments;
    for (std::size_t i = static_cast<std::size_t>(rank); i < parameters.size();
         i += static_cast<std::size_t>(ranks)) {
      const auto& [name, shape] = std::pair(parameters[i].name, parameters[i].shape);
      const auto count = static_cast<std::size_t>(parameters[i].count());
      own.push_back({name, shape, values_of(name, count, version)});
      std::vector<std::string> kinds = {"exp_avg/", "exp_avg_sq/"};
      if (config.train.ema > 0) kinds.emplace_back("ema/");
      for (const std::string& moment : kinds) {
        moments.push_back({moment + name, shape, values_of(moment + name, count, version)});
      }
    }
    shards.push_back(*write_shard({run, kLaunch, step}, rank, ranks, views(own), views(moments)));
    if (machines.empty()) continue;
    shards.back().model.machine = machines[static_cast<std::size_t>(rank)];
    shards.back().optimizer.machine = shards.back().model.machine;
  }
  CheckpointState state{.step = step,
                        .samples = 8,
                        .model_hash = model.hash(),
                        .model_family = model.family,
                        .optimizer = "adamw"};
  return *commit_checkpoint(run, kLaunch, state, shards, config_to_json(config),
                            huggingface_config(config.model));
}

// A tensor in Hugging Face's format.
struct ForeignTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

inline std::string bytes_in(const std::vector<float>& values, FloatFormat format) {
  std::vector<std::byte> bytes;
  (void)write_numbers(values, format, bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Distributes the tensors round-robin over this number of files; writes an index if there are
// several.
inline void write_foreign(const std::filesystem::path& folder,
                          const std::vector<ForeignTensor>& tensors,
                          int files,
                          const Json& config) {
  std::filesystem::create_directories(folder);
  std::map<std::string, std::string> places;
  for (int file = 0; file < files; ++file) {
    const std::string name =
        files == 1 ? "model.safetensors" : fmt::format("part-{}.safetensors", file);
    std::vector<TensorOutline> outlines;
    std::string data;
    for (std::size_t i = static_cast<std::size_t>(file); i < tensors.size();
         i += static_cast<std::size_t>(files)) {
      outlines.push_back({tensors[i].name, tensors[i].dtype, tensors[i].shape});
      data += tensors[i].bytes;
      places.emplace(tensors[i].name, name);
    }
    auto writer = SafetensorsWriter::create(folder / name, outlines, {{"format", "pt"}});
    EXPECT_OK(writer->append(std::as_bytes(std::span(data))));
    EXPECT_OK(writer->close());
  }
  if (files > 1) {
    EXPECT_OK(write_json_file(folder, "model.safetensors.index.json", weights_index(places, 0)));
  }
  if (!config.is_null()) {
    EXPECT_OK(write_json_file(folder, "config.json", config));
  }
}

// The type and the bytes of each tensor of a folder, by name.
inline std::map<std::string, std::string> tensor_bytes_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> tensors;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto file = SafetensorsFile::open(entry.path());
    for (const auto& [name, each] : file->entries()) {
      std::string bytes(each.end - each.begin, '\0');
      EXPECT_OK(
          file->read_bytes(name, each.dtype, each.shape, std::as_writable_bytes(std::span(bytes))));
      tensors[name] = each.dtype + " " + bytes;
    }
  }
  return tensors;
}

}  // namespace motley::testing

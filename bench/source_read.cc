// The speed at which a training reads its samples, on one thread.
//
//   source_read CONFIG
//
// Opens the data of a configuration as a worker does, and prints the seconds that this took and the
// number of training samples. Then each line of standard input is a number of global batches to
// read; prints one line for it: their seconds. bench/read_speed alternates it with PyTorch.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/system/files.h"
#include "data/source.h"
#include "models/spec/model_spec.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

Result<void> read_batches(const std::string& path) {
  constexpr std::size_t kConfigBytesMax = 1 << 20;
  MOTLEY_ASSIGN(const std::string text, read_file(path, kConfigBytesMax));
  MOTLEY_ASSIGN(const ResolvedConfig resolved, resolve_config(text, path, {}, {}));
  const Config& config = resolved.config;
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(config.model));
  const double start_s = now_s();
  MOTLEY_ASSIGN(const auto source, open_source(config.data, model.sample, config.train.seed));
  fmt::print("{:.6f} {}\n", now_s() - start_s, source->train_samples());
  std::fflush(stdout);
  const auto input_count = static_cast<std::size_t>(model.sample.input_count());
  const auto target_count = static_cast<std::size_t>(model.sample.target.count());
  const auto batch = static_cast<std::size_t>(config.train.global_batch);
  std::uint64_t sample = 0;
  for (int batches = 0; std::cin >> batches;) {
    const double first_s = now_s();
    for (int k = 0; k < batches; ++k) {
      std::vector<std::int32_t> inputs(batch * input_count);
      std::vector<std::int32_t> targets(batch * target_count);
      for (std::size_t b = 0; b < batch; ++b) {
        source->train_sample(sample++, std::span(inputs).subspan(b * input_count, input_count),
                             std::span(targets).subspan(b * target_count, target_count));
      }
      source->release_pages();
    }
    fmt::print("{:.6f}\n", now_s() - first_s);
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: source_read CONFIG\n");
    return 2;
  }
  const auto read = motley::read_batches(argv[1]);
  if (read.ok()) return 0;
  fmt::print(stderr, "{}\n", motley::describe(read.error()));
  return static_cast<int>(read.error().code);
}

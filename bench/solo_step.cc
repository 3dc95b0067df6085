// The speed of forward and backward of a whole gpt2 on one thread, without an optimizer.
// Prints one JSON object; bench/solo_step_peer.py times eager PyTorch on the same sizes.
//
//   OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 taskset -c 0 build/release/bin/solo_step
//       --layers 8 --width 512 --heads 8 --vocab 8192 --context 256 --batch 4
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <vector>

#include <boost/program_options.hpp>

#include <ATen/ATen.h>

#include "base/clock.h"
#include "base/philox.h"
#include "models/kernels/torch_threads.h"
#include "models/layers/chain.h"

namespace {

namespace po = boost::program_options;

struct Sizes {
  motley::ModelConfig model{.layers = 8, .width = 512, .heads = 8, .context = 256, .vocab = 8192};
  int batch = 4;
  int steps = 5;
  int warmup = 2;
};

bool read_options(int argc, char** argv, Sizes& sizes) {
  po::options_description options("solo_step");
  const auto number = [](int* value) { return po::value(value)->default_value(*value); };
  options.add_options()("help", "this text")("layers", number(&sizes.model.layers))(
      "width", number(&sizes.model.width))("heads", number(&sizes.model.heads))(
      "vocab", number(&sizes.model.vocab))("context", number(&sizes.model.context))(
      "batch", number(&sizes.batch))("steps", number(&sizes.steps), "timed; the median counts")(
      "warmup", number(&sizes.warmup))("dropout",
                                       po::value(&sizes.model.dropout)->default_value(0.0));
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, options), given);
  po::notify(given);
  if (given.count("help") != 0) std::cout << options;
  return given.count("help") == 0;
}

at::Tensor random_tokens(const Sizes& sizes, std::uint64_t key) {
  at::Tensor tokens = at::empty({sizes.batch, sizes.model.context}, at::kLong);
  auto* ids = tokens.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    ids[i] = motley::philox4x32(key, 0, static_cast<std::uint64_t>(i))[0] %
             static_cast<std::uint32_t>(sizes.model.vocab);
  }
  return tokens;
}

void run(const Sizes& sizes, const motley::ModelSpec& spec) {
  const c10::InferenceMode guard;
  motley::LayerChain chain(sizes.model, spec, 0, static_cast<int>(spec.layers.size()));
  chain.initialize(1);
  const at::Tensor tokens = random_tokens(sizes, 1);
  const at::Tensor targets = random_tokens(sizes, 2);
  std::vector<double> seconds;
  double loss = 0;
  for (int step = 0; step < sizes.warmup + sizes.steps; ++step) {
    const motley::MicroContext micro{.seed = 1, .step = step};
    const double start_s = motley::now_s();
    std::ranges::fill(chain.gradients(), 0.0F);
    const auto outcome = chain.forward_loss(tokens, targets, micro);
    static_cast<void>(chain.backward_loss(micro));
    if (step >= sizes.warmup) seconds.push_back(motley::now_s() - start_s);
    loss = outcome.loss_sum / outcome.count;
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  fmt::print(
      "{{\"tokens_per_s\": {}, \"step_s\": {}, \"timed\": \"forward and backward\", "
      "\"loss\": {}}}\n",
      static_cast<double>(tokens.numel()) / *middle, *middle, loss);
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  try {
    if (!read_options(argc, argv, sizes)) return 0;
  } catch (const po::error& error) {
    fmt::print(stderr, "solo_step: {}\n", error.what());
    return 2;
  }
  const auto spec = motley::describe_model(sizes.model);
  if (!spec || sizes.batch < 1 || sizes.steps < 1 || sizes.warmup < 0) {
    fmt::print(stderr, "{}",
               spec ? "solo_step: batch, steps and warmup must be positive\n"
                    : motley::describe(spec.error()));
    return 2;
  }
  motley::set_compute_threads(1);
  run(sizes, *spec);
  return 0;
}

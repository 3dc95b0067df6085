// The speed of whole training steps (forward, backward, AdamW) of a package on one thread.
//
//   package_step PACKAGE BATCH.safetensors
//
// BATCH contains one micro-batch, `input` and `target`. Each line of standard input is a number of
// steps to train; prints one line for it: their seconds and the last loss. bench/package_speed
// alternates it with eager PyTorch.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/clock.h"
#include "base/system/system_memory.h"
#include "models/device/tensor_memory.h"
#include "models/kernels/torch_threads.h"
#include "models/layers/chain.h"
#include "models/package/package.h"
#include "tests/models/read_tensor.h"
#include "training/optimizer/optimizer.h"

namespace motley {
namespace {

using testing::must;
using testing::read_tensor;

class Trainer {
 public:
  Trainer(const ModelConfig& model, const ModelSpec& spec, const SafetensorsFile& batch)
      : chain_(model, spec, 0, static_cast<int>(spec.layers.size())),
        input_(read_tensor(batch, "input")),
        target_(read_tensor(batch, "target")),
        optimizer_(make_optimizer(train_)),
        moments_(optimizer_->moment_names().size(), std::vector<float>(chain_.values().size())) {
    const SafetensorsFile first = must(SafetensorsFile::open(spec.package->weights_path()));
    for (const Parameter& parameter : chain_.parameters()) {
      const auto read = first.read_bytes(parameter.spec.name, "F32", parameter.spec.shape,
                                         std::as_writable_bytes(parameter.values));
      if (!read.ok()) throw std::runtime_error(describe(read.error()));
      if (parameter.spec.tied_use) ties_.emplace_back(owner_of(parameter), parameter);
    }
  }

  double step() {
    const MicroContext micro{.seed = 1, .step = step_};
    std::ranges::fill(chain_.gradients(), 0.0F);
    const LossLayer::Outcome outcome = chain_.forward_loss(input_, target_, micro);
    static_cast<void>(chain_.backward_loss(micro));
    ++step_;
    for (const auto& [owner, use] : ties_) {
      std::ranges::transform(owner.gradients, use.gradients, owner.gradients.begin(), std::plus());
    }
    // Statistics are updated too; no training forward reads them.
    std::vector<std::span<float>> moments(moments_.begin(), moments_.end());
    const StepFactors factors{train_.lr, optimizer_->corrections(step_)};
    const double terms = outcome.count;
    optimizer_->update(chain_.values(), chain_.gradients(), moments,
                       {.factors = factors, .gradient_scale = static_cast<float>(1 / terms)});
    for (const auto& [owner, use] : ties_) std::ranges::copy(owner.values, use.values.begin());
    return outcome.loss_sum / terms;
  }

 private:
  using Parameter = LayerChain::Parameter;

  [[nodiscard]] const Parameter& owner_of(const Parameter& use) const {
    return *std::ranges::find(chain_.parameters(), use.spec.name,
                              [](const Parameter& other) { return other.spec.name; });
  }

  const TrainConfig train_;
  LayerChain chain_;
  at::Tensor input_;
  at::Tensor target_;
  std::unique_ptr<const Optimizer> optimizer_;
  std::vector<std::vector<float>> moments_;
  std::vector<std::pair<Parameter, Parameter>> ties_;  // the owner of a parameter, and its other
                                                       // use
  std::int64_t step_ = 0;
};

void run(const std::string& package, const std::string& batch) {
  const ModelConfig model{.kind = "package", .path = package};
  const ModelSpec spec = must(describe_model(model));
  const c10::InferenceMode guard;
  Trainer trainer(model, spec, must(SafetensorsFile::open(batch)));
  int steps = 0;
  while (std::cin >> steps) {
    const double start_s = now_s();
    double loss = 0;
    for (int k = 0; k < steps; ++k) loss = trainer.step();
    fmt::print("{} {}\n", now_s() - start_s, loss);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: package_step PACKAGE BATCH.safetensors\n");
    return 2;
  }
  motley::set_compute_threads(1);
  motley::keep_freed_memory();
  motley::reuse_tensor_memory();
  try {
    motley::run(argv[1], argv[2]);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "package_step: {}\n", failure.what());
    return 1;
  }
  return 0;
}

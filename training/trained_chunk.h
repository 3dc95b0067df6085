// TrainedChunk: one chunk's layers, and the queued tensors of its boundaries by micro-batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include <ATen/core/Tensor.h>

#include "base/check.h"
#include "base/ids.h"
#include "models/layers/chain.h"
#include "pipeline/execute/stage_compute.h"
#include "training/boundary_tensors.h"
#include "training/memory/gradient_mirror.h"

namespace motley {

struct TrainedChunk {
  LayerChain chain;
  // The range of the chain's gradients that is all-reduced over the chunk's replicas: all but that
  // of a tied parameter with its own all-reduce, which is first or last.
  std::size_t own_first = 0;
  std::size_t own_count = 0;
  std::map<MicroId, Arrival> inputs;
  std::map<MicroId, Arrival> output_gradients;
  std::unique_ptr<GradientMirror> mirror;  // if those lie on a device and are all-reduced

  explicit TrainedChunk(LayerChain layers)
      : chain(std::move(layers)),
        own_count(static_cast<std::size_t>(chain.gradients_tensor().numel())) {}

  [[nodiscard]] at::Tensor own_gradients() const {
    return chain.gradients_tensor().narrow(0, static_cast<std::int64_t>(own_first),
                                           static_cast<std::int64_t>(own_count));
  }

  void leave_out(const at::Tensor& tied) {
    const auto begin = static_cast<std::size_t>(tied.storage_offset());
    const std::size_t end = begin + static_cast<std::size_t>(tied.numel());
    const std::size_t own_end = own_first + own_count;
    // The padding behind it, up to the next alignment, is left out too.
    const bool is_first = begin == 0;
    MOTLEY_CHECK(is_first || own_end - end < LayerChain::kAlignment,
                 "a tied parameter in the middle of a chunk");
    own_first = is_first ? end : own_first;
    own_count = is_first ? own_end - end : begin - own_first;
  }

  // The mirror's part of a parameter's gradient; empty if it is not all-reduced there.
  [[nodiscard]] std::span<float> mirrored(const at::Tensor& gradient) const {
    const auto begin = static_cast<std::size_t>(gradient.storage_offset());
    if (mirror == nullptr || begin < own_first || begin >= own_first + own_count) return {};
    return mirror->host().subspan(begin - own_first, static_cast<std::size_t>(gradient.numel()));
  }

  // Reports that all gradients from `first` on are final.
  void notify_ready(std::size_t first, const StageCompute::OnReady& on_ready) {
    const std::size_t own = std::max(first, own_first) - own_first;
    if (mirror != nullptr) {
      mirror->fetch(own, on_ready);
    } else {
      on_ready(own);
    }
  }

  std::map<MicroId, Arrival>& waiting(ValueKind kind) {
    return kind == ValueKind::kActivation ? inputs : output_gradients;
  }

  Arrival take_input(MicroId micro) { return std::move(inputs.extract(micro).mapped()); }

  Arrival take_output_gradient(MicroId micro) {
    return std::move(output_gradients.extract(micro).mapped());
  }
};

}  // namespace motley

// What layers keep in memory, by formula instead of measured: bytes of one sample, in fp32. Those
// of the native families follow the tensors that their layers keep (a test compares them); they
// stand in docs/algorithms.md.
#pragma once

#include <cstdint>

#include "models/spec/attention_path.h"
#include "models/spec/model_spec.h"

namespace motley {

struct LayerMemory {
  std::int64_t saved_bytes = 0;      // kept from forward to backward
  std::int64_t queued_bytes = 0;     // kept from the input part of backward to the weight part
  std::int64_t workspace_bytes = 0;  // peak beyond what is saved while it computes; an estimate
  // The same whatever the number of samples: graphs of packages make gradients of parameters before
  // they are added to the sum.
  std::int64_t workspace_least_bytes = 0;
  // The same, beside both: constants of narrow types, each converted while it is used.
  std::int64_t converted_bytes = 0;
};

// What a process holds of layers for as long as it trains them, in fp32.
struct LastingMemory {
  std::int64_t constant_bytes = 0;  // as their own types; one that several layers name counts once
  std::int64_t value_bytes = 0;     // parameters and statistics, each use of a tied one
  std::int64_t gradient_bytes = 0;  // and what statistics add up
  std::int64_t moment_bytes = 0;    // of all that the optimizer updates

  [[nodiscard]] std::int64_t bytes() const {
    return constant_bytes + value_bytes + gradient_bytes + moment_bytes;
  }
};

// Of layers [first, last), where the optimizer keeps so many floats a parameter. REQUIRES: 0 <=
// first <= last <= model.layers.size().
[[nodiscard]] LastingMemory lasting_memory(const ModelSpec& model,
                                           int first,
                                           int last,
                                           int moments_per_parameter);

// Of the native families, with attention by products of whole score matrices. Which path a device
// takes shows only there (models/layers/device): its layers are measured. REQUIRES: 0 <= layer <
// model.layers.size().
[[nodiscard]] LayerMemory native_layer_memory(const ModelSpec& model, int layer);
// With attention on this path.
[[nodiscard]] LayerMemory native_layer_memory(const ModelSpec& model,
                                              int layer,
                                              AttentionPath path);

// Of any. REQUIRES: 0 <= layer < model.layers.size().
[[nodiscard]] LayerMemory layer_memory(const ModelSpec& model, int layer);

}  // namespace motley

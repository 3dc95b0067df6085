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
};

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

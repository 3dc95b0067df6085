// The memory of layers by formula instead of by measurement: bytes for one sample.
// Formulas of the native families follow the tensors that their layers save (a test compares them);
// they are listed in docs/algorithms.md.
#pragma once

#include <cstdint>

#include "models/spec/attention_path.h"
#include "models/spec/model_spec.h"

namespace motley {

struct LayerMemory {
  std::int64_t saved_bytes = 0;      // from forward to backward
  std::int64_t queued_bytes = 0;     // from the input part of backward to the weight part
  std::int64_t workspace_bytes = 0;  // peak during computing, beyond what is saved; an estimate
  // Independent of the number of samples: graphs of packages produce gradients of parameters before
  // they are accumulated.
  std::int64_t workspace_least_bytes = 0;
  // The same, beside both: constants of narrow types, each converted while it is used.
  std::int64_t converted_bytes = 0;
};

// The memory that a process holds for layers throughout their training, in fp32.
struct PersistentMemory {
  std::int64_t constant_bytes = 0;  // in their own dtypes; one that several layers use counts once
  std::int64_t value_bytes = 0;     // parameters and statistics, each use of a tied one
  std::int64_t gradient_bytes = 0;  // including the sums of observed statistics
  std::int64_t moment_bytes = 0;    // of all parameters that the optimizer updates

  [[nodiscard]] std::int64_t bytes() const {
    return constant_bytes + value_bytes + gradient_bytes + moment_bytes;
  }
};

// For layers [first, last), with an optimizer that has this many moments for each parameter.
// REQUIRES: 0 <= first <= last <= model.layers.size().
[[nodiscard]] PersistentMemory persistent_memory(const ModelSpec& model,
                                                 int first,
                                                 int last,
                                                 int moments_per_parameter);

inline constexpr std::int64_t kFp32Bytes = 4;

// `value_bytes`: of a value between two products of a layer, which devices round to the dtype of
// products (docs/numerics.md#precision).

// For the native families, with attention by products of whole score matrices. A device's path is
// known only on the device (models/layers/device), where its layers are measured. REQUIRES: 0 <=
// layer < model.layers.size().
[[nodiscard]] LayerMemory native_layer_memory(const ModelSpec& model,
                                              int layer,
                                              std::int64_t value_bytes = kFp32Bytes);
// With attention on the given path.
[[nodiscard]] LayerMemory native_layer_memory(const ModelSpec& model,
                                              int layer,
                                              AttentionPath path,
                                              std::int64_t value_bytes = kFp32Bytes);

// For any family; results of a package's products are fp32 in every precision. REQUIRES: 0 <= layer
// < model.layers.size().
[[nodiscard]] LayerMemory layer_memory(const ModelSpec& model,
                                       int layer,
                                       std::int64_t value_bytes = kFp32Bytes);

}  // namespace motley

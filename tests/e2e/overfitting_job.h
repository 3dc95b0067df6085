// A job that overfits after a few steps: an mlp that can learn each of some short random texts.
#pragma once

#include <cstdint>
#include <string>

namespace motley::test {

inline constexpr const char* kOverfitting = R"(
[model]
kind = "mlp"
layers = 1
width = 64
context = 8
vocab = 256
[data]
kind = "text"
holdout = 0.3
[train]
steps = 400
global_batch = 8
micro_batch = 4
warmup_steps = 0
schedule = "constant"
lr = 2e-2
weight_decay = 0
eval_every = 5
eval_batches = 2
early_stopping = 3
[checkpoint]
every = 50
keep = 1
keep_best = true
[profile]
seconds = 0.2
[run]
threads = 1
restarts = 0
)";

// The text of data.path.
inline std::string random_letters() {
  std::string text;
  std::uint32_t state = 7;
  for (int i = 0; i < 600; ++i) {
    state = state * 1664525U + 1013904223U;
    text += static_cast<char>('a' + (state >> 24U) % 26);
  }
  return text;
}

}  // namespace motley::test

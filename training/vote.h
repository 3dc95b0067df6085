// The vote before each step: what every rank must know to take the same decision.
//
// Each rank gives, for every layer it holds, the squared norm of the layer's gradient, and the rank
// with the loss also gives the sum of the loss and the number of tokens. Everybody sums in the
// order of the layers, whoever holds them, so that the global norm has the same bits under every
// plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace motley {

struct LayerNorm2 {
  int layer = 0;
  double squared_norm = 0;  // of the gradient summed over tokens; not finite when any value is not
};

struct Vote {
  std::int64_t tokens = 0;  // 0 on ranks without the loss
  double loss_sum = 0;      // over those tokens
  std::vector<LayerNorm2> layers;
};

struct Tally {
  std::int64_t tokens = 0;
  double loss_sum = 0;
  double squared_norm = 0;
  bool finite = true;  // false: every rank skips the step
};

[[nodiscard]] std::size_t vote_bytes_max(int layer_count);
[[nodiscard]] std::vector<std::byte> encode_vote(const Vote& vote);

// Sums the votes of all ranks. kCorrupt when one is malformed, or (for_step) a layer is missing or
// given twice. Without for_step (evaluation) no layers are expected.
[[nodiscard]] Result<Tally> tally_votes(const std::vector<std::vector<std::byte>>& votes,
                                        int layer_count,
                                        bool for_step);

}  // namespace motley

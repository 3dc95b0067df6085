// The loss that rounds of local training cost at equal tokens, and the tokens that make up for it.
#pragma once

#include <cstdint>

namespace motley {

// The loss at equal tokens above that of synchronous training, as a share, for `rounds` rounds of
// that many steps, with all-reduces during overlap_steps of them: an estimate from measurements of
// few rounds (docs/measurements.md) and published ones of many.
[[nodiscard]] double expected_loss_increase(std::int64_t steps,
                                            std::int64_t rounds,
                                            std::int64_t overlap_steps);

// The tokens to an equal loss, relative to those of synchronous training.
[[nodiscard]] double token_factor(std::int64_t steps,
                                  std::int64_t rounds,
                                  std::int64_t overlap_steps);

}  // namespace motley

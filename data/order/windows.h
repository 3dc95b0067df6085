// Maps sample n to a window of a corpus: the split into a training and a held-out part, and the
// shuffled order of each epoch. Everything here is a pure function of its arguments.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace motley {

// The first `train_tokens` are trained on, the rest is held out; no window crosses the border.
// Window w of a part covers the context + 1 tokens from w × context on (+ the epoch's shift in
// training), so each token is the target of one window, except for fewer than three contexts at the
// ends of a part.
struct WindowLayout {
  std::uint64_t context = 0;
  std::uint64_t train_tokens = 0;
  std::uint64_t train_windows = 0;
  std::uint64_t eval_windows = 0;

  // The first training window of an epoch starts up to this many tokens late, exclusive; at least
  // 1.
  [[nodiscard]] std::uint64_t shifts() const;
};

// kData if a part that `holdout` requires is shorter than one window.
[[nodiscard]] Result<WindowLayout> lay_out_windows(std::uint64_t tokens,
                                                   double holdout,
                                                   std::uint64_t context);

// The same where held-out windows come from other data: all `tokens` are trained on, and the
// windows of `eval_tokens` begin at 0. kData if the training tokens are too few.
[[nodiscard]] Result<WindowLayout> lay_out_windows_apart(std::uint64_t tokens,
                                                         std::uint64_t eval_tokens,
                                                         std::uint64_t context);

// The endless order of training samples: epoch after epoch, each with its own permutation.
class WindowOrder {
 public:
  // REQUIRES: windows >= 1.
  WindowOrder(std::uint64_t seed, std::uint64_t windows);

  struct Place {
    std::uint64_t epoch = 0;
    std::uint64_t window = 0;
  };

  [[nodiscard]] Place place(std::uint64_t index) const;

  // The epoch's shift, drawn from 0 … shifts - 1. REQUIRES: shifts >= 1.
  [[nodiscard]] std::uint64_t shift(std::uint64_t epoch, std::uint64_t shifts) const;

 private:
  std::uint64_t key_;
  std::uint64_t windows_;
};

}  // namespace motley

// Synthetic data: learnable, without a file, for benchmarks and tests.
#pragma once

#include <cstdint>
#include <memory>

#include "data/order/windows.h"
#include "data/source.h"

namespace motley {

// The order of 65,536 synthetic windows or samples, the last share `holdout` of them held out.
// Derived classes define their contents, which do not depend on the seed.
class SyntheticWindows : public Source {
 public:
  SyntheticWindows(double holdout, std::uint64_t seed);

  void train_sample(std::uint64_t index,
                    std::span<std::int32_t> input,
                    std::span<std::int32_t> target) const final;
  void eval_sample(std::uint64_t index,
                   std::span<std::int32_t> input,
                   std::span<std::int32_t> target) const final;
  [[nodiscard]] std::uint64_t train_samples() const final;

  [[nodiscard]] std::uint64_t eval_samples() const final { return eval_windows_; }

  [[nodiscard]] double bytes_per_token() const final { return 0; }

  [[nodiscard]] std::vector<std::string> remarks() const final { return {}; }

 private:
  virtual void write(std::uint64_t window,
                     std::span<std::int32_t> input,
                     std::span<std::int32_t> target) const = 0;

  std::uint64_t eval_windows_;
  WindowOrder order_;  // of the training windows; declared after eval_windows_, which it uses
};

// In each window token 0 is uniform, and token t + 1 is (token t + 7) mod vocab with probability
// 7/8, else uniform. The loss of a perfect model is -c ln c - (1 - c) ln((1 - c) / (vocab - 1))
// nats with c = 7/8 + 1/(8 vocab).
[[nodiscard]] std::unique_ptr<const Source> make_synthetic_source(double holdout,
                                                                  int vocab,
                                                                  std::int64_t seed);

}  // namespace motley

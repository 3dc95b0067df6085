#include "data/synthetic_source.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "base/philox.h"
#include "data/windows.h"

namespace motley {
namespace {

constexpr std::uint64_t kCorpusKey = 0x73796E7468657469;
constexpr std::uint32_t kStride = 7;
constexpr std::uint32_t kNoiseOneIn = 8;

class SyntheticSource final : public Source {
 public:
  SyntheticSource(double holdout, std::uint32_t vocab, std::uint64_t seed)
      : vocab_(vocab),
        eval_windows_(synthetic_eval_windows(holdout)),
        order_(seed, kSyntheticWindows - eval_windows_) {}

  void train_sample(std::uint64_t index,
                    std::span<std::int32_t> inputs_T,
                    std::span<std::int32_t> targets_T) const override {
    write_window(order_.place(index).window, inputs_T, targets_T);
  }

  void eval_sample(std::uint64_t index,
                   std::span<std::int32_t> inputs_T,
                   std::span<std::int32_t> targets_T) const override {
    MOTLEY_CHECK(eval_windows_ > 0, "nothing is held out");
    write_window(train_samples() + index % eval_windows_, inputs_T, targets_T);
  }

  [[nodiscard]] std::uint64_t train_samples() const override {
    return kSyntheticWindows - eval_windows_;
  }

  [[nodiscard]] std::uint64_t eval_samples() const override { return eval_windows_; }

  // The tokens follow from the vocabulary alone.
  [[nodiscard]] DataIdentity identity() const override {
    return {0, hash128_hex(std::as_bytes(std::span(&vocab_, 1)))};
  }

  [[nodiscard]] double bytes_per_token() const override { return 0; }

 private:
  void write_window(std::uint64_t window,
                    std::span<std::int32_t> inputs_T,
                    std::span<std::int32_t> targets_T) const {
    std::uint32_t token = philox4x32(kCorpusKey, window, 0)[1] % vocab_;
    for (std::size_t t = 0; t < inputs_T.size(); ++t) {
      const PhiloxBlock draw = philox4x32(kCorpusKey, window, t + 1);
      inputs_T[t] = static_cast<std::int32_t>(token);
      const bool noise = draw[0] % kNoiseOneIn == 0;
      token = noise ? draw[1] % vocab_ : (token + kStride) % vocab_;
      targets_T[t] = static_cast<std::int32_t>(token);
    }
  }

  std::uint32_t vocab_;
  std::uint64_t eval_windows_;
  WindowOrder order_;  // of the training windows; after eval_windows_, which it needs
};

}  // namespace

std::uint64_t synthetic_eval_windows(double holdout) {
  if (holdout <= 0) return 0;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(kSyntheticWindows * holdout));
}

std::unique_ptr<const Source> make_synthetic_source(double holdout, int vocab, std::int64_t seed) {
  return std::make_unique<SyntheticSource>(holdout, static_cast<std::uint32_t>(vocab),
                                           static_cast<std::uint64_t>(seed));
}

}  // namespace motley

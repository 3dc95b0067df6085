#include "data/synthetic_source.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "base/philox.h"

namespace motley {
namespace {

constexpr std::uint64_t kCorpusKey = 0x73796E7468657469;
constexpr std::uint32_t kStride = 7;
constexpr std::uint32_t kNoiseOneIn = 8;

constexpr std::uint64_t kWindows = 1 << 16;

std::uint64_t held_out_windows(double holdout) {
  if (holdout <= 0) return 0;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(kWindows * holdout));
}

class SyntheticSource final : public SyntheticWindows {
 public:
  SyntheticSource(double holdout, std::uint32_t vocab, std::uint64_t seed)
      : SyntheticWindows(holdout, seed), vocab_(vocab) {}

  // The tokens depend only on the vocabulary.
  [[nodiscard]] DataIdentity identity() const override {
    return {0, hash128_hex(std::as_bytes(std::span(&vocab_, 1)))};
  }

 private:
  void write(std::uint64_t window,
             std::span<std::int32_t> inputs_T,
             std::span<std::int32_t> targets_T) const override {
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
};

}  // namespace

SyntheticWindows::SyntheticWindows(double holdout, std::uint64_t seed)
    : eval_windows_(held_out_windows(holdout)), order_(seed, kWindows - eval_windows_) {}

void SyntheticWindows::train_sample(std::uint64_t index,
                                    std::span<std::int32_t> input,
                                    std::span<std::int32_t> target) const {
  write(order_.place(index).window, input, target);
}

void SyntheticWindows::eval_sample(std::uint64_t index,
                                   std::span<std::int32_t> input,
                                   std::span<std::int32_t> target) const {
  MOTLEY_CHECK(eval_windows_ > 0, "nothing is held out");
  write(train_samples() + index % eval_windows_, input, target);
}

std::uint64_t SyntheticWindows::train_samples() const {
  return kWindows - eval_windows_;
}

std::unique_ptr<const Source> make_synthetic_source(double holdout, int vocab, std::int64_t seed) {
  return std::make_unique<SyntheticSource>(holdout, static_cast<std::uint32_t>(vocab),
                                           static_cast<std::uint64_t>(seed));
}

}  // namespace motley

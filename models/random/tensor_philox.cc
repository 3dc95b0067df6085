#include "models/random/tensor_philox.h"

#include <ATen/ATen.h>

#include "base/philox.h"

namespace motley {
namespace {

constexpr std::int64_t kLowWord = 0xFFFFFFFF;

at::Tensor times(const at::Tensor& word, std::uint32_t factor) {
  return at::mul(word, at::Scalar(static_cast<std::int64_t>(factor)));
}

at::Tensor mixed(const at::Tensor& product, const at::Tensor& word, std::uint32_t key) {
  return at::bitwise_xor(high_word(product), word)
      .bitwise_xor_(at::Scalar(static_cast<std::int64_t>(key)));
}

}  // namespace

// A signed product that wraps around has the right 64 bits; the mask removes the sign extension.
at::Tensor high_word(const at::Tensor& numbers) {
  return at::bitwise_right_shift(numbers, 32).bitwise_and_(kLowWord);
}

// Words that all blocks share are tensors of one element until a round mixes them with a word that
// differs between blocks.
std::array<at::Tensor, 4> philox_words(const PhiloxCounter& first,
                                       std::int64_t blocks,
                                       c10::Device device) {
  const auto integers = at::device(device).dtype(at::kLong);
  const auto alone = [&](std::uint32_t word) {
    return at::full({1}, at::Scalar(static_cast<std::int64_t>(word)), integers);
  };
  const std::int64_t first_block = first.words[0];
  std::array<at::Tensor, 4> words = {at::arange(first_block, first_block + blocks, integers),
                                     alone(first.words[1]), alone(first.words[2]),
                                     alone(first.words[3])};
  auto key0 = static_cast<std::uint32_t>(first.key);
  auto key1 = static_cast<std::uint32_t>(first.key >> 32);
  for (int round = 0; round < Philox::kRounds; ++round) {
    const at::Tensor product0 = times(words[0], Philox::kMul0);
    const at::Tensor product1 = times(words[2], Philox::kMul1);
    words = {mixed(product1, words[1], key0), at::bitwise_and(product1, kLowWord),
             mixed(product0, words[3], key1), at::bitwise_and(product0, kLowWord)};
    key0 += Philox::kWeyl0;
    key1 += Philox::kWeyl1;
  }
  return words;
}

}  // namespace motley

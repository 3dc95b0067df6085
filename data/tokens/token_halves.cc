#include "data/tokens/token_halves.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "data/tokens/spread_blocks.h"

namespace motley {
namespace {

constexpr double kFalseAlarmLog = 13.8156;  // -ln(1e-6)

std::vector<std::uint16_t> sampled_words(std::span<const std::byte> bytes) {
  std::vector<std::uint16_t> words;
  for_spread_blocks(bytes, [&](std::span<const std::byte> block) {
    const std::size_t begin = words.size();
    words.resize(begin + block.size() / sizeof(std::uint16_t));
    const std::size_t added = words.size() - begin;
    if (added > 0) std::memcpy(&words[begin], block.data(), added * sizeof(std::uint16_t));
  });
  return words;
}

unsigned lower_of(std::uint16_t word) {
  return word & 0xFFU;
}

unsigned upper_of(std::uint16_t word) {
  return word >> 8U;
}

// A shuffle with the same order on every machine.
void shuffle(std::vector<std::uint16_t>& words) {
  constexpr std::uint64_t kKey = 0x68616c766573;
  for (std::size_t left = words.size(); left > 1; --left) {
    std::swap(words[left - 1], words[philox4x32(kKey, 0, left)[0] % left]);
  }
}

double count_different(std::vector<std::uint32_t>& values) {
  std::ranges::sort(values);
  return static_cast<double>(std::unique(values.begin(), values.end()) - values.begin());
}

// Four independent tokens share one lower half by chance with a probability of 2^-24.
bool have_one_lower_half(const std::vector<std::uint16_t>& words) {
  constexpr std::ptrdiff_t kUpperMin = 4;
  std::array<bool, 256> is_upper{};
  for (const std::uint16_t word : words) {
    if (lower_of(word) != lower_of(words.front())) return false;
    is_upper[upper_of(word)] = true;
  }
  return std::ranges::count(is_upper, true) >= kUpperMin;
}

}  // namespace

HalfCounts::HalfCounts(std::span<const std::byte> bytes) {
  for (const std::uint16_t word : sampled_words(bytes)) {
    if (lower_of(word) == upper_of(word)) continue;
    ++lower_[lower_of(word)];
    ++upper_[upper_of(word)];
    ++words_;
  }
}

double HalfCounts::distance() const {
  double distance = 0;
  for (std::size_t byte = 0; byte < kBytes; ++byte) {
    distance += std::abs(lower_[byte] - upper_[byte]) / (2 * words_);
  }
  return distance;
}

bool HalfCounts::are_alike() const {
  // Halves at this distance have a set of bytes that contains the lower half that much more often
  // than the upper one. Over n words this difference of shares, each word between -1 and 1, is
  // smaller by t with a probability of at most exp(-n t^2 / 2) (Hoeffding), and no larger than the
  // observed distance.
  constexpr double kDistance = 0.2;
  return words_ > 0 && distance() <= kDistance - std::sqrt(2 * kFalseAlarmLog / words_);
}

bool HalfCounts::may_be_uniform() const {
  // An upper bound of the mean for n uniform draws, and the excess with a probability of at most
  // exp(-2 n t^2) (McDiarmid); kUneven allows for a last row of fewer than 256 tokens.
  constexpr double kUneven = 0.01;
  if (words_ == 0) return false;
  double distance = 0;
  for (const double count : lower_) distance += std::abs(count / words_ - 1.0 / kBytes) / 2;
  return distance <=
         kUneven + std::sqrt((kBytes - 1) / words_) / 2 + std::sqrt(kFalseAlarmLog / (2 * words_));
}

bool are_halves_swapped(std::span<const std::byte> bytes) {
  std::vector<std::uint16_t> words = sampled_words(bytes);
  if (words.empty()) return false;
  if (have_one_lower_half(words)) return true;
  // Pairs tokens from random positions, each token once: neighbours depend on each other, and so do
  // tokens at regular distances. Equal pairs count once, so that a chance agreement of two frequent
  // tokens has little effect.
  shuffle(words);
  std::vector<std::uint32_t> in_lower;
  std::vector<std::uint32_t> in_upper;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const auto [less, more] = std::minmax(words[i], words[i + 1]);
    if (less == more) continue;
    const std::uint32_t pair = static_cast<std::uint32_t>(less) << 16U | more;
    if (lower_of(less) == lower_of(more)) in_lower.push_back(pair);
    if (upper_of(less) == upper_of(more)) in_upper.push_back(pair);
  }
  // If the upper half is at least as likely, in_lower exceeds by s of n with a probability of at
  // most exp(-s^2 / (2 n)) (Hoeffding).
  const double lower = count_different(in_lower);
  const double upper = count_different(in_upper);
  return lower > upper && lower - upper >= std::sqrt(2 * kFalseAlarmLog * (lower + upper));
}

}  // namespace motley

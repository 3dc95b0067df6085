#include "data/synthetic_samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/philox.h"
#include "data/synthetic_source.h"

namespace motley {
namespace {

// Keys of the draws for a sample's targets, its noise, and the sign pattern of a class.
constexpr std::uint64_t kTargetKey = 0x7461726765747320;
constexpr std::uint64_t kNoiseKey = 0x6E6F697365206F66;
constexpr std::uint64_t kPatternKey = 0x7061747465726E73;

constexpr std::uint32_t kSampleStride = 7;      // between neighbouring integers of an input
constexpr std::uint32_t kSampleNoiseOneIn = 8;  // of them is random

// Approximates a normal draw, with the same bits everywhere: the sum of four uniform ones, with
// standard deviation 1.
float normal(std::uint32_t bits, std::uint32_t more_bits) {
  const auto sum = static_cast<std::int32_t>((bits & 0xFFFF) + (bits >> 16) + (more_bits & 0xFFFF) +
                                             (more_bits >> 16)) -
                   2 * 0xFFFF;
  return static_cast<float>(sum) * (1.7320508F / 65536);
}

// Uniform in [-1, 1).
float even(std::uint32_t bits) {
  return 2 * to_unit_float(bits) - 1;
}

class SyntheticSamples final : public SyntheticWindows {
 public:
  SyntheticSamples(double holdout, const SampleFormat& format, std::uint64_t seed)
      : SyntheticWindows(holdout, seed),
        format_(format),
        targets_(static_cast<std::uint64_t>(format.target.count())),
        groups_(std::min(largest_input(format), targets_)) {}

  // The samples depend only on the sample format.
  [[nodiscard]] DataIdentity identity() const override {
    const auto text = [](const TensorSpec& tensor, std::int64_t limit) {
      const char* const type = tensor.type == Dtype::kFloat32 ? "float32"
                               : tensor.type == Dtype::kBool  ? "bool"
                                                              : "int64";
      return fmt::format("{} [{}] {}\n", type, fmt::join(tensor.shape, ", "), limit);
    };
    std::string all;
    for (const SampleInput& input : format_.inputs) {
      all += text(input.tensor, input.limit.value_or(0));
    }
    all += text(format_.target, format_.target_limit);
    return {0, hash128_hex(std::as_bytes(std::span(all)))};
  }

 private:
  static std::uint64_t largest_input(const SampleFormat& format) {
    std::int64_t largest = 0;
    for (const SampleInput& input : format.inputs) {
      largest = std::max(largest, input.tensor.count());
    }
    return static_cast<std::uint64_t>(largest);
  }

  // The random bits of target number `target` of a sample.
  static std::uint32_t draw(std::uint64_t sample, std::uint64_t target) {
    return philox4x32(kTargetKey, sample, target)[0];
  }

  [[nodiscard]] bool has_classes() const { return format_.target.type == Dtype::kInt64; }

  [[nodiscard]] std::uint32_t class_of(std::uint32_t drawn) const {
    return drawn % static_cast<std::uint32_t>(format_.target_limit);
  }

  void write(std::uint64_t sample,
             std::span<std::int32_t> input,
             std::span<std::int32_t> target) const override {
    // With more targets than inputs, groups of targets share a draw; else groups of inputs do.
    for (std::uint64_t k = 0; k < targets_; ++k) {
      const std::uint32_t drawn = draw(sample, k * groups_ / targets_);
      target[k] = has_classes() ? static_cast<std::int32_t>(class_of(drawn))
                                : std::bit_cast<std::int32_t>(even(drawn));
    }
    for (std::size_t k = 0; k < format_.inputs.size(); ++k) {
      const auto count = static_cast<std::size_t>(format_.inputs[k].tensor.count());
      write_input(sample, k, input.first(count));
      input = input.subspan(count);
    }
  }

  void write_input(std::uint64_t sample, std::size_t which, std::span<std::int32_t> input) const {
    const SampleInput& wanted = format_.inputs[which];
    const bool are_floats = wanted.tensor.type == Dtype::kFloat32;
    if (!are_floats && !wanted.limit) {  // a mask, mostly
      std::ranges::fill(input, 1);
      return;
    }
    std::uint64_t begin = 0;
    for (std::uint64_t group = 0; group < groups_; ++group) {
      // The first element of the next group is the first j with j × groups / elements > group.
      const std::uint64_t end = ((group + 1) * input.size() + groups_ - 1) / groups_;
      const std::uint32_t drawn = draw(sample, group);
      const std::span<std::int32_t> part = input.subspan(begin, end - begin);
      if (are_floats) {
        write_floats(sample, drawn, which, begin, part);
      } else {
        write_integers(sample, drawn, which, begin, part);
      }
      begin = end;
    }
  }

  // Noise around a pattern of +1 and -1: the class's own, or one common pattern times the target.
  void write_floats(std::uint64_t sample,
                    std::uint32_t drawn,
                    std::size_t which,
                    std::uint64_t first,
                    std::span<std::int32_t> input) const {
    const std::uint64_t pattern = has_classes() ? class_of(drawn) : 0;
    const float height = has_classes() ? 1 : even(drawn);
    PhiloxBlock noise{};
    PhiloxBlock signs{};
    for (std::uint64_t i = 0; i < input.size(); ++i) {
      const std::uint64_t place = first + i;
      if (i == 0 || place % 2 == 0) noise = philox4x32(kNoiseKey + which, sample, place / 2);
      if (i == 0 || place % 128 == 0) signs = philox4x32(kPatternKey + which, pattern, place / 128);
      const std::uint64_t half = 2 * (place % 2);
      const bool up = (signs[place / 32 % 4] >> (place % 32) & 1) != 0;
      input[i] = std::bit_cast<std::int32_t>(normal(noise[half], noise[half + 1]) +
                                             (up ? height : -height));
    }
  }

  // A sequence that counts up from a start given by the target, with random exceptions.
  void write_integers(std::uint64_t sample,
                      std::uint32_t drawn,
                      std::size_t which,
                      std::uint64_t first,
                      std::span<std::int32_t> input) const {
    const auto limit = static_cast<std::uint64_t>(*format_.inputs[which].limit);
    const std::uint64_t start =
        has_classes() ? class_of(drawn) : (std::uint64_t{drawn} >> 8) * limit >> 24;
    for (std::uint64_t i = 0; i < input.size(); ++i) {
      const PhiloxBlock noise = philox4x32(kNoiseKey + which, sample, first + i);
      const bool exception = noise[0] % kSampleNoiseOneIn == 0;
      const std::uint64_t value = exception ? noise[1] : start + kSampleStride * i;
      input[i] = static_cast<std::int32_t>(value % limit);
    }
  }

  SampleFormat format_;
  std::uint64_t targets_;
  std::uint64_t groups_;
};

}  // namespace

std::unique_ptr<const Source> make_synthetic_samples(double holdout,
                                                     const SampleFormat& format,
                                                     std::int64_t seed) {
  return std::make_unique<SyntheticSamples>(holdout, format, static_cast<std::uint64_t>(seed));
}

}  // namespace motley

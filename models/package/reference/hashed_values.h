// Values that are a function of their position, used as inputs for comparing a layer with its
// reference (models/package/reference/reference.h). Python's motley.hashed generates the same bits;
// docs/formats/package.md defines the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "models/package/draws.h"

namespace motley {

// The purpose of a stream of values; the enumerators' values are part of the format.
enum class StreamPurpose : std::uint64_t {
  kInput = 1,
  kTarget = 2,
  kGradient = 3,
  kParameter = 4,
  kStatistic = 5,
  kDropout = 6,
  kPlaces = 7,
  kSigns = 8,
  kDrawn = 9,
};

class HashedStream {
 public:
  HashedStream(std::uint64_t seed, StreamPurpose purpose, std::uint64_t index = 0);

  // 64 bits for each element.
  [[nodiscard]] std::uint64_t bits(std::uint64_t element) const;

  // A multiple of 2^-24 from 0 to below 1.
  [[nodiscard]] double fraction(std::uint64_t element) const;

 private:
  std::uint64_t state_;
};

// Values from `low` to `low + width`, both fp32.
struct UniformValues {
  float low = 0;
  float width = 0;
};

struct IntegersBelow {
  std::int64_t limit = 1;
};

struct ListedValues {
  std::vector<double> values;  // at least one
};

// A number of consecutive elements of a sample.
struct ValuePiece {
  std::int64_t count = 0;
  std::variant<UniformValues, IntegersBelow, ListedValues> kind;
};

// Covers all elements of a sample.
using ValuePieces = std::vector<ValuePiece>;

// Fill whole samples, one behind the other. One in eight integers becomes `ignored`, but never the
// first. REQUIRES: the pieces have as many elements as a sample.
void fill_samples(std::span<float> values, const ValuePieces& pieces, const HashedStream& stream);
void fill_samples(std::span<std::int64_t> values,
                  const ValuePieces& pieces,
                  const HashedStream& stream,
                  std::optional<std::int64_t> ignored);

void fill_uniform(std::span<float> values, UniformValues kind, const HashedStream& stream);

// A dropout mask: 0 with probability p, else 1 / (1 - p). REQUIRES: 0 < p < 1.
void fill_mask(std::span<float> values, double p, const HashedStream& stream);

// The numbers of a draw (models/package/draws.h): integers use all 64 bits of each element, other
// kinds the upper 32. REQUIRES: integers are drawn into int64 values, other kinds into floats.
void fill_drawn(std::span<float> values, const DrawnNumbers& drawn, const HashedStream& stream);
void fill_drawn(std::span<std::int64_t> values,
                const DrawnNumbers& drawn,
                const HashedStream& stream);

// Which of `count` elements are sampled: all where they are not more.
[[nodiscard]] std::vector<std::size_t> sampled_places(std::uint64_t seed,
                                                      std::size_t count,
                                                      std::size_t wanted);

}  // namespace motley

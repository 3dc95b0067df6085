#include "models/package/reference/hashed_values.h"

#include <algorithm>

#include "base/check.h"
#include "models/numbers/random_numbers.h"

namespace motley {
namespace {

// Element `element` of the SplitMix64 stream that begins at `state`.
std::uint64_t mix(std::uint64_t state, std::uint64_t element) {
  std::uint64_t z = state + (element + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// The product has at most 48 bits and is exact, so a fused multiply-add gives the same result.
float uniform_value(const UniformValues& kind, double fraction) {
  return static_cast<float>(kind.low + static_cast<double>(kind.width) * fraction);
}

double value_of(const ValuePiece& piece, const HashedStream& stream, std::size_t element) {
  if (const auto* const uniform = std::get_if<UniformValues>(&piece.kind)) {
    return uniform_value(*uniform, stream.fraction(element));
  }
  if (const auto* const below = std::get_if<IntegersBelow>(&piece.kind)) {
    return static_cast<double>(stream.bits(element) % static_cast<std::uint64_t>(below->limit));
  }
  const std::vector<double>& values = std::get<ListedValues>(piece.kind).values;
  return values[stream.bits(element) % values.size()];
}

template <class T, class Set>
void fill_pieces(std::span<T> values, const ValuePieces& pieces, Set set) {
  for (std::size_t element = 0; element < values.size();) {
    for (const ValuePiece& piece : pieces) {
      for (std::int64_t k = 0; k < piece.count; ++k, ++element) set(piece, element);
    }
  }
}

}  // namespace

HashedStream::HashedStream(std::uint64_t seed, StreamPurpose purpose, std::uint64_t index)
    : state_(mix(mix(mix(0, seed), static_cast<std::uint64_t>(purpose)), index)) {}

std::uint64_t HashedStream::bits(std::uint64_t element) const {
  return mix(state_, element);
}

double HashedStream::fraction(std::uint64_t element) const {
  constexpr int kUnused = 40;
  return static_cast<double>(bits(element) >> kUnused) * 0x1p-24;
}

void fill_samples(std::span<float> values, const ValuePieces& pieces, const HashedStream& stream) {
  fill_pieces(values, pieces, [&](const ValuePiece& piece, std::size_t element) {
    values[element] = static_cast<float>(value_of(piece, stream, element));
  });
}

void fill_samples(std::span<std::int64_t> values,
                  const ValuePieces& pieces,
                  const HashedStream& stream,
                  std::optional<std::int64_t> ignored) {
  constexpr int kTopThree = 61;
  fill_pieces(values, pieces, [&](const ValuePiece& piece, std::size_t element) {
    const bool is_ignored = ignored && element > 0 && stream.bits(element) >> kTopThree == 0;
    values[element] =
        is_ignored ? *ignored : static_cast<std::int64_t>(value_of(piece, stream, element));
  });
}

void fill_uniform(std::span<float> values, UniformValues kind, const HashedStream& stream) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = uniform_value(kind, stream.fraction(i));
  }
}

void fill_mask(std::span<float> values, double p, const HashedStream& stream) {
  const auto kept = static_cast<float>(1 / (1 - p));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = stream.fraction(i) >= p ? kept : 0;
}

void fill_drawn(std::span<float> values, const DrawnNumbers& drawn, const HashedStream& stream) {
  MOTLEY_CHECK(drawn.kind != DrawKind::kIntegers, "integers of index {} as floats", drawn.index);
  const auto number = drawn.kind == DrawKind::kUniform  ? uniform_number
                      : drawn.kind == DrawKind::kNormal ? normal_number
                                                        : exponential_number;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = number(static_cast<std::uint32_t>(stream.bits(i) >> 32));
  }
}

void fill_drawn(std::span<std::int64_t> values,
                const DrawnNumbers& drawn,
                const HashedStream& stream) {
  MOTLEY_CHECK(drawn.kind == DrawKind::kIntegers, "floats of index {} as integers", drawn.index);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = integer_number(stream.bits(i), drawn.low, drawn.count);
  }
}

std::vector<std::size_t> sampled_places(std::uint64_t seed, std::size_t count, std::size_t wanted) {
  const HashedStream stream(seed, StreamPurpose::kPlaces);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < std::min(count, wanted); ++i) {
    places.push_back(count <= wanted ? i : stream.bits(i) % count);
  }
  return places;
}

}  // namespace motley

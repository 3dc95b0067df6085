#include "data/pictures/fit_picture.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace motley {
namespace {

// The weights of a new pixel: of the old pixels from `first` on, with the given sum.
struct Taps {
  std::int64_t first = 0;
  std::vector<std::uint64_t> weights;
};

struct Side {
  std::vector<Taps> taps;  // [new pixel]
  std::uint64_t sum = 1;   // of the weights of each
};

// On a line of length from × to, old pixel p covers [p × to, (p + 1) × to) and new pixel i [i ×
// from, (i + 1) × from).
Side shrink(std::int64_t from, std::int64_t to, std::int64_t begin) {
  Side side{{}, static_cast<std::uint64_t>(from)};
  for (std::int64_t i = 0; i < to; ++i) {
    const std::int64_t left = i * from;
    const std::int64_t right = left + from;
    Taps taps{begin + left / to, {}};
    for (std::int64_t p = left / to; p * to < right; ++p) {
      const std::int64_t covered = std::min(right, (p + 1) * to) - std::max(left, p * to);
      taps.weights.push_back(static_cast<std::uint64_t>(covered));
    }
    side.taps.push_back(std::move(taps));
  }
  return side;
}

// The centre of new pixel i is at ((2i + 1) × from - to) / (2 × to), in units of old pixels'
// centres.
Side grow(std::int64_t from, std::int64_t to, std::int64_t begin) {
  const std::int64_t unit = 2 * to;
  Side side{{}, static_cast<std::uint64_t>(unit)};
  for (std::int64_t i = 0; i < to; ++i) {
    const std::int64_t place =
        std::clamp<std::int64_t>((2 * i + 1) * from - to, 0, (from - 1) * unit);
    const std::int64_t share = place % unit;  // of the following pixel; 0 if there is none
    Taps taps{begin + place / unit, {static_cast<std::uint64_t>(unit - share)}};
    if (share > 0) taps.weights.push_back(static_cast<std::uint64_t>(share));
    side.taps.push_back(std::move(taps));
  }
  return side;
}

// Scales the middle `from` of `all` pixels to `to`.
Side scale(std::int64_t all, std::int64_t from, std::int64_t to) {
  const std::int64_t begin = (all - from) / 2;
  return from >= to ? shrink(from, to, begin) : grow(from, to, begin);
}

// `a` × b / c, rounded, from 1 to `most`.
std::int64_t in_proportion(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t most) {
  return std::clamp<std::int64_t>((2 * a * b + c) / (2 * c), 1, most);
}

}  // namespace

void fit_picture(const Raster& picture,
                 std::int64_t height,
                 std::int64_t width,
                 std::span<std::byte> planes) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  MOTLEY_CHECK(std::cmp_equal(planes.size(), picture.channels * height * width),
               "{} bytes for {} x {} x {}", planes.size(), picture.channels, height, width);
  const bool is_wide = picture.width * height > picture.height * width;
  const Side across = scale(
      picture.width,
      is_wide ? in_proportion(picture.height, width, height, picture.width) : picture.width, width);
  const Side down =
      scale(picture.height,
            is_wide ? picture.height : in_proportion(picture.width, height, width, picture.height),
            height);
  const std::uint64_t whole = across.sum * down.sum;
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width) * channels;
  const auto row_values = static_cast<std::size_t>(width) * channels;
  std::vector<std::uint64_t> sums(row_values);
  for (std::size_t y = 0; y < down.taps.size(); ++y) {
    std::ranges::fill(sums, 0);
    for (std::size_t tap = 0; tap < down.taps[y].weights.size(); ++tap) {
      const std::uint64_t row_weight = down.taps[y].weights[tap];
      const auto row = static_cast<std::size_t>(down.taps[y].first) + tap;
      const auto old = std::span(picture.pixels).subspan(row * row_bytes, row_bytes);
      for (std::size_t x = 0; x < across.taps.size(); ++x) {
        std::size_t at = static_cast<std::size_t>(across.taps[x].first) * channels;
        for (const std::uint64_t weight : across.taps[x].weights) {
          for (std::size_t c = 0; c < channels; ++c) {
            sums[x * channels + c] +=
                row_weight * weight * std::to_integer<std::uint64_t>(old[at + c]);
          }
          at += channels;
        }
      }
    }
    for (std::size_t x = 0; x < across.taps.size(); ++x) {
      for (std::size_t c = 0; c < channels; ++c) {
        const std::uint64_t value = (2 * sums[x * channels + c] + whole) / (2 * whole);
        planes[(c * down.taps.size() + y) * across.taps.size() + x] = static_cast<std::byte>(value);
      }
    }
  }
}

}  // namespace motley

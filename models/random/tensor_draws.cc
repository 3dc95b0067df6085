#include "models/random/tensor_draws.h"

#include <algorithm>
#include <array>

#include <ATen/ATen.h>

#include "models/device/compute_device.h"
#include "models/kernels/in_parts.h"
#include "models/numbers/random_numbers.h"
#include "models/random/tensor_philox.h"

namespace motley {
namespace {

// Tiles of 64 words. Ten fp64 tensors of a slice's 1 Mi words take 80 MiB.
constexpr std::uint64_t kTilesOfASlice = std::uint64_t{1} << 14;
constexpr auto kTile = static_cast<std::uint64_t>(kTileWords);

std::uint64_t words_each(const DrawnNumbers& drawn) {
  return drawn.kind == DrawKind::kIntegers ? 2 : 1;
}

at::ScalarType type_of(const DrawnNumbers& drawn) {
  return drawn.kind == DrawKind::kIntegers ? at::kLong : at::kFloat;
}

// Conversion on the CPU.

template <class T, class Convert>
void convert_words(const DrawStream& stream,
                   std::uint64_t first,
                   std::size_t words_of_each,
                   at::Tensor& made,
                   Convert convert) {
  constexpr std::int64_t kGrain = 4096;
  constexpr std::size_t kAtOnce = 1024;
  T* const out = made.data_ptr<T>();
  kernels::in_parts(made.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::uint32_t, 2 * kAtOnce> words;
    while (begin < end) {
      const auto count = std::min(kAtOnce, static_cast<std::size_t>(end - begin));
      stream.words((first + static_cast<std::uint64_t>(begin)) * words_of_each,
                   std::span(words).first(count * words_of_each));
      for (std::size_t i = 0; i < count; ++i) out[begin + i] = convert(&words[i * words_of_each]);
      begin += static_cast<std::int64_t>(count);
    }
  });
}

at::Tensor drawn_on_host(const DrawStream& stream,
                         const DrawnNumbers& drawn,
                         std::uint64_t first,
                         std::int64_t count) {
  using Word = const std::uint32_t*;
  at::Tensor made = at::empty({count}, type_of(drawn));
  switch (drawn.kind) {
    case DrawKind::kUniform:
      convert_words<float>(stream, first, 1, made, [](Word word) { return uniform_number(*word); });
      break;
    case DrawKind::kNormal:
      convert_words<float>(stream, first, 1, made, [](Word word) { return normal_number(*word); });
      break;
    case DrawKind::kExponential:
      convert_words<float>(stream, first, 1, made,
                           [](Word word) { return exponential_number(*word); });
      break;
    case DrawKind::kIntegers:
      convert_words<std::int64_t>(stream, first, 2, made, [&](Word word) {
        return integer_number(std::uint64_t{word[0]} << 32 | word[1], drawn.low, drawn.count);
      });
      break;
  }
  return made;
}

// Conversion on other devices. Divisors are tensors, because some devices replace a division by a
// scalar with a multiplication by its inverse.

// (words + 1/2) / 2^32, exactly.
at::Tensor probabilities(const at::Tensor& words) {
  return words.to(at::kDouble).add_(0.5).mul_(0x1p-32);
}

// portable_log (models/numbers/portable_log.h), operation by operation.
at::Tensor logs(const at::Tensor& x) {
  const auto [halves, exponents] = at::frexp(x);
  const at::Tensor is_small = halves.lt(0.7071067811865476);
  const at::Tensor mantissas = at::where(is_small, halves * 2.0, halves);
  const at::Tensor powers = exponents.to(at::kDouble).sub_(is_small.to(at::kDouble));
  const at::Tensor t = (mantissas - 1.0).div_(mantissas + 1.0);
  const at::Tensor t2 = t * t;
  at::Tensor series = at::zeros_like(t);
  for (int k = 21; k >= 1; k -= 2) series.mul_(t2).add_(1.0 / k);
  return (t * 2.0).mul_(series).add_(powers * 0.6931471805599453);
}

at::Tensor quotients(const QuantilePart& part, const at::Tensor& x) {
  at::Tensor above = at::full_like(x, part.above[0]);
  at::Tensor below = at::full_like(x, part.below[0]);
  for (std::size_t k = 1; k < part.above.size(); ++k) {
    above.mul_(x).add_(part.above[k]);
    below.mul_(x).add_(part.below[k]);
  }
  return above.div_(below);
}

// normal_number (models/numbers/random_numbers.h), operation by operation. Evaluates both ranges
// for all elements.
at::Tensor normal_numbers(const at::Tensor& words) {
  const at::Tensor p = probabilities(words);
  const at::Tensor q = p - 0.5;
  const at::Tensor middle =
      quotients(kQuantileOfMiddle, at::rsub(q * q, kQuantileMiddleSquare)).mul_(q);
  const at::Tensor root = logs(at::minimum(p, at::rsub(p, 1.0))).neg_().sqrt_();
  const at::Tensor tail = quotients(kQuantileOfTail, root - kQuantileTailOffset);
  const at::Tensor is_middle = q.abs().le(kQuantileMiddle);
  return at::where(is_middle, middle, at::where(q.lt(0.0), at::neg(tail), tail)).to(at::kFloat);
}

// integer_number, from pairs of words.
at::Tensor integers(const at::Tensor& words, const DrawnNumbers& drawn) {
  const at::Tensor pairs = words.view({-1, 2});
  const at::Scalar count(static_cast<std::int64_t>(drawn.count));
  const at::Tensor lower = high_word(at::mul(pairs.select(1, 1), count));
  const at::Tensor upper = high_word(at::mul(pairs.select(1, 0), count).add_(lower));
  return upper.add_(at::Scalar(drawn.low));
}

at::Tensor converted(const at::Tensor& words, const DrawnNumbers& drawn) {
  switch (drawn.kind) {
    case DrawKind::kUniform:
      return at::bitwise_right_shift(words, 8).to(at::kFloat).mul_(0x1p-24);
    case DrawKind::kNormal:
      return normal_numbers(words);
    case DrawKind::kExponential:
      return logs(probabilities(words)).neg_().to(at::kFloat);
    case DrawKind::kIntegers:
      return integers(words, drawn);
  }
  return {};
}

// The words of consecutive tiles, in their order.
at::Tensor words_of_tiles(const DrawStream& stream,
                          std::uint64_t tile,
                          std::uint64_t tiles,
                          c10::Device device) {
  const auto rows = static_cast<std::int64_t>(tiles);
  std::array<at::Tensor, 4> words = philox_words(stream.first_of(tile), rows * kTileBlocks, device);
  for (at::Tensor& word : words) word = word.view({rows, kTileBlocks});
  return at::stack(words, 1).view({-1});
}

at::Tensor drawn_there(const DrawStream& stream,
                       const DrawnNumbers& drawn,
                       std::uint64_t first,
                       std::int64_t count,
                       c10::Device device) {
  const std::uint64_t each = words_each(drawn);
  const std::uint64_t begin = first * each;
  const std::uint64_t end = begin + static_cast<std::uint64_t>(count) * each;
  at::Tensor made = at::empty({count}, at::device(device).dtype(type_of(drawn)));
  for (std::uint64_t at_word = begin; at_word < end;) {
    const std::uint64_t tile = at_word / kTile;
    // Slices are aligned, so all block numbers of a slice have the same upper half.
    const std::uint64_t tile_end =
        std::min((tile / kTilesOfASlice + 1) * kTilesOfASlice, (end + kTile - 1) / kTile);
    const std::uint64_t slice_end = std::min(end, tile_end * kTile);
    const at::Tensor words = words_of_tiles(stream, tile, tile_end - tile, device)
                                 .narrow(0, static_cast<std::int64_t>(at_word - tile * kTile),
                                         static_cast<std::int64_t>(slice_end - at_word));
    made.narrow(0, static_cast<std::int64_t>((at_word - begin) / each),
                static_cast<std::int64_t>((slice_end - at_word) / each))
        .copy_(converted(words, drawn));
    at_word = slice_end;
  }
  return made;
}

}  // namespace

at::Tensor draw_numbers(const DrawStream& stream,
                        const DrawnNumbers& drawn,
                        std::uint64_t first,
                        std::int64_t count,
                        c10::Device device) {
  const bool needs_fp64 = drawn.kind == DrawKind::kNormal || drawn.kind == DrawKind::kExponential;
  if (device.is_cpu()) return drawn_on_host(stream, drawn, first, count);
  if (needs_fp64 && exact_type(device) != at::kDouble) {
    return drawn_on_host(stream, drawn, first, count).to(device);
  }
  return drawn_there(stream, drawn, first, count, device);
}

}  // namespace motley

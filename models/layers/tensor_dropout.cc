#include "models/layers/tensor_dropout.h"

#include <algorithm>
#include <array>

#include <ATen/ATen.h>

#include "base/check.h"
#include "base/philox.h"

namespace motley {
namespace {

// A slice of 4 Mi elements. Its words, those of the previous round and two products take 80 MiB,
// and are enough work for each of the hundred operations that draw them.
constexpr std::int64_t kTilesAtOnce = std::int64_t{1} << 16;

constexpr std::int64_t kLowWord = 0xFFFFFFFF;

// The upper half of a product. As a signed integer the product wraps around: its 64 bits are right,
// and the sign extension is masked off.
at::Tensor high_word(const at::Tensor& product) {
  return at::bitwise_right_shift(product, 32).bitwise_and_(kLowWord);
}

at::Tensor times(const at::Tensor& word, std::uint32_t factor) {
  return at::mul(word, at::Scalar(static_cast<std::int64_t>(factor)));
}

at::Tensor mixed(const at::Tensor& product, const at::Tensor& word, std::uint32_t key) {
  return at::bitwise_xor(high_word(product), word)
      .bitwise_xor_(at::Scalar(static_cast<std::int64_t>(key)));
}

// philox4x32 of base/philox.h for the blocks of consecutive tiles: word w of each in words[w]. A
// word that is equal for all blocks is a scalar until a round mixes it with another word.
std::array<at::Tensor, 4> philox_words(const DropoutStream::Draw& draw,
                                       std::int64_t first_tile,
                                       std::int64_t tiles,
                                       c10::Device device) {
  const auto integers = at::device(device).dtype(at::kLong);
  const auto alone = [&](std::uint32_t word) {
    return at::full({1}, at::Scalar(static_cast<std::int64_t>(word)), integers);
  };
  std::array<at::Tensor, 4> words = {
      at::arange(first_tile * DropoutStream::kBlocks, (first_tile + tiles) * DropoutStream::kBlocks,
                 integers),
      alone(draw.step), alone(draw.micro), alone(draw.place)};
  auto key0 = static_cast<std::uint32_t>(draw.key);
  auto key1 = static_cast<std::uint32_t>(draw.key >> 32);
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

// The factor of each element of these tiles, [tiles, kTile].
at::Tensor factors(const DropoutStream& stream,
                   std::int64_t first_tile,
                   std::int64_t tiles,
                   c10::Device device) {
  const DropoutStream::Draw& draw = stream.draw();
  std::array<at::Tensor, 4> kept = philox_words(draw, first_tile, tiles, device);
  for (at::Tensor& word : kept) {
    word = word.ge(at::Scalar(static_cast<std::int64_t>(draw.threshold)))
               .view({tiles, DropoutStream::kBlocks});
  }
  return at::stack(kept, 1).to(at::kFloat).mul_(draw.scale).view({tiles, DropoutStream::kTile});
}

}  // namespace

void drop_in_place(const DropoutStream& stream, const at::Tensor& x) {
  // Each whole tile is a row; the remaining elements are one more row.
  const at::Tensor flat = x.view({-1});
  const std::int64_t tiles = flat.numel() / DropoutStream::kTile;
  const std::int64_t whole = tiles * DropoutStream::kTile;
  const std::int64_t left = flat.numel() - whole;
  if (tiles > 0) {
    drop_rows_in_place(stream, {flat.narrow(0, 0, whole).view({tiles, DropoutStream::kTile})}, 0);
  }
  if (left > 0) drop_rows_in_place(stream, {flat.narrow(0, whole, left).view({1, left})}, tiles);
}

void drop_rows_in_place(const DropoutStream& stream, at::TensorList some, std::int64_t first_row) {
  const at::Tensor& like = some.front();
  const std::int64_t count = like.size(0);
  const std::int64_t columns = like.size(1);
  const std::int64_t row_tiles = DropoutStream::tiles(columns);
  MOTLEY_CHECK((first_row + count) * row_tiles < DropoutStream::kTilesMax,
               "row {} + {} rows of {} tiles", first_row, count, row_tiles);
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, kTilesAtOnce / row_tiles);
  for (std::int64_t first = 0; first < count; first += rows_at_once) {
    const std::int64_t rows = std::min(rows_at_once, count - first);
    const at::Tensor of_rows =
        factors(stream, (first_row + first) * row_tiles, rows * row_tiles, like.device())
            .view({rows, row_tiles * DropoutStream::kTile})
            .narrow(1, 0, columns);
    for (const at::Tensor& x : some) x.narrow(0, first, rows).mul_(of_rows);
  }
}

}  // namespace motley

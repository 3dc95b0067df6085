#include "models/layers/tensor_dropout.h"

#include <algorithm>
#include <array>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/random/tensor_philox.h"

namespace motley {
namespace {

// A slice of 4 Mi elements. Its words, those of the previous round and two products take 80 MiB,
// and are enough work for each of the hundred operations that draw them.
constexpr std::int64_t kTilesAtOnce = std::int64_t{1} << 16;

// What each element of these tiles is multiplied by, [tiles, kTile].
at::Tensor factors(const DropoutStream& stream,
                   std::int64_t first_tile,
                   std::int64_t tiles,
                   c10::Device device) {
  const DropoutStream::Draw& draw = stream.draw();
  const PhiloxCounter first{
      draw.key,
      {static_cast<std::uint32_t>(first_tile * kTileBlocks), draw.step, draw.micro, draw.place}};
  std::array<at::Tensor, 4> kept = philox_words(first, tiles * kTileBlocks, device);
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

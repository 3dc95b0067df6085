#include "checkpoint/convert/value_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace motley {

std::uint64_t value_count(const TensorOutline& tensor) {
  std::uint64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

StoredValues::StoredValues(const CheckpointReader& reader, StoredTensor tensor)
    : reader_(reader), tensor_(std::move(tensor)), count_(value_count(tensor_.outline)) {}

Result<void> StoredValues::next(std::span<float> values) {
  MOTLEY_TRY(reader_.read_part(tensor_.outline.name, done_, values));
  done_ += values.size();
  if (tensor_.hash.empty()) return {};
  hasher_.add(std::as_bytes(values));
  if (done_ < count_ || hasher_.hex() == tensor_.hash) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("damaged tensor '{}', {}", tensor_.outline.name, tensor_.file.string()),
               "its hash differs from the manifest's",
               "use an earlier checkpoint, or copy this one again"};
}

TransposedValues::TransposedValues(const CheckpointReader& reader, StoredTensor tensor)
    : reader_(reader), tensor_(std::move(tensor)) {
  MOTLEY_CHECK(tensor_.outline.shape.size() == 2, "'{}' is not a matrix", tensor_.outline.name);
  rows_ = static_cast<std::uint64_t>(tensor_.outline.shape[0]);
  columns_ = static_cast<std::uint64_t>(tensor_.outline.shape[1]);
}

// Reads as many columns at once as fit: row by row, a strip of each.
Result<void> TransposedValues::read_columns() {
  const std::uint64_t fitting =
      std::max<std::uint64_t>(kPieceValues / std::max<std::uint64_t>(rows_, 1), 1);
  const std::uint64_t width = std::min(fitting, columns_ - next_column_);
  ready_.resize(rows_ * width);
  std::vector<float> strip(width);
  for (std::uint64_t row = 0; row < rows_; ++row) {
    MOTLEY_TRY(reader_.read_part(tensor_.outline.name, row * columns_ + next_column_, strip));
    for (std::uint64_t column = 0; column < width; ++column) {
      ready_[column * rows_ + row] = strip[column];
    }
  }
  next_column_ += width;
  taken_ = 0;
  return {};
}

Result<void> TransposedValues::next(std::span<float> values) {
  while (!values.empty()) {
    if (taken_ == ready_.size()) MOTLEY_TRY(read_columns());
    const std::size_t count = std::min(values.size(), ready_.size() - taken_);
    std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(taken_), count, values.begin());
    taken_ += count;
    values = values.subspan(count);
  }
  return {};
}

}  // namespace motley

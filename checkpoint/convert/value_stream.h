// ValueStream: the values of one tensor in sequence, in pieces of the caller's size, so that memory
// does not grow with the tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

// The maximum number of values converted at once.
inline constexpr std::size_t kPieceValues = std::size_t{1} << 20;

// One owner thread.
class ValueStream {
 public:
  virtual ~ValueStream() = default;
  // Fills `values` with the next ones. REQUIRES: that many are left.
  [[nodiscard]] virtual Result<void> next(std::span<float> values) = 0;
};

[[nodiscard]] std::uint64_t value_count(const TensorOutline& tensor);

// In the tensor's order in its file; kCorrupt at the end if the manifest has another hash.
// REQUIRES: `reader` contains the tensor and outlives the stream.
class StoredValues final : public ValueStream {
 public:
  StoredValues(const CheckpointReader& reader, StoredTensor tensor);
  [[nodiscard]] Result<void> next(std::span<float> values) override;

 private:
  const CheckpointReader& reader_;
  StoredTensor tensor_;
  std::uint64_t count_;
  std::uint64_t done_ = 0;
  Hasher128 hasher_;
};

// In the order of the transposed matrix; checks no hash. REQUIRES: `reader` contains the tensor,
// which has two dimensions, and outlives the stream.
class TransposedValues final : public ValueStream {
 public:
  TransposedValues(const CheckpointReader& reader, StoredTensor tensor);
  [[nodiscard]] Result<void> next(std::span<float> values) override;

 private:
  [[nodiscard]] Result<void> read_columns();

  const CheckpointReader& reader_;
  StoredTensor tensor_;
  std::uint64_t rows_;
  std::uint64_t columns_;
  std::uint64_t next_column_ = 0;  // the next to read
  std::vector<float> ready_;       // columns in sequence
  std::size_t taken_ = 0;          // values of `ready_` already taken
};

}  // namespace motley

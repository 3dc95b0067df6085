// ValueStream: the values of one tensor, one after the other, in pieces of the size that the taker
// chooses, so that memory does not grow with the tensor.
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

// The most values that what converts takes at once.
inline constexpr std::size_t kPieceValues = std::size_t{1} << 20;

// One owner thread.
class ValueStream {
 public:
  virtual ~ValueStream() = default;
  // The next ones, as many as there is room for. REQUIRES: so many are left.
  [[nodiscard]] virtual Result<void> next(std::span<float> values) = 0;
};

[[nodiscard]] std::uint64_t value_count(const TensorOutline& tensor);

// In the order in which a tensor lies in its file; kCorrupt at its end when its hash is not the
// manifest's, where there is one. REQUIRES: `reader` has it, and outlives the stream.
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

// In the order of the matrix's transpose. Nothing is compared with a hash. REQUIRES: `reader` has
// the tensor, which has two dimensions, and outlives the stream.
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
  std::uint64_t next_column_ = 0;  // that is to be read
  std::vector<float> ready_;       // columns, one after the other
  std::size_t taken_ = 0;          // of `ready_`
};

}  // namespace motley

// The bytes of a sparse message's block: up to 4,096 values, some of them selected. Layout:
// docs/formats/frame.md. The format of the selected values is a parameter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "compression/codec/fixed_size_codec.h"
#include "compression/sparse/list_positions.h"

namespace motley {

inline constexpr std::size_t kSparseBlockValues = 4096;
inline constexpr std::size_t kMaskWords = kSparseBlockValues / 64;

// In addition to the selected values and one byte for each position: the count, the bytes for long
// gaps (4,095 / 255 of them), and a format's overhead for a run of values, a scale.
inline constexpr std::size_t kSparseBlockBytesMore = 2 + 16 + 4;

// SelectedValues: the selected values of a block. Large: a scratch object that is reused for each
// block.
struct SelectedValues {
  std::size_t count = 0;
  bool finite = true;  // else the whole block is sent as not finite, and count is 0
  alignas(64) std::array<std::uint64_t, kMaskWords> mask{};  // bit i % 64 of word i / 64
  std::array<float, kSparseBlockValues> values;              // the first `count`
  std::array<std::uint16_t, kSparseBlockValues + kPositionsSlack> places;  // positions, ascending

  [[nodiscard]] std::span<float> selected_values() { return std::span(values).first(count); }

  [[nodiscard]] std::span<const float> selected_values() const {
    return std::span(values).first(count);
  }

  [[nodiscard]] std::span<const std::uint16_t> selected_positions() const {
    return std::span(places).first(count);
  }
};

// Fills count and places from the mask.
void list_positions(SelectedValues& kept);

// Retains the first `count` selected values. REQUIRES: count <= kept.count.
void select_first(SelectedValues& kept, std::size_t count);

// Writes the block to block_B, which has space for kSparseBlockBytesMore + count places + the
// values, and returns its bytes. REQUIRES: places below block_values, which is 1 to
// kSparseBlockValues.
std::size_t write_sparse_block(const SelectedValues& kept,
                               std::size_t block_values,
                               const FixedSizeFormat& format,
                               std::byte* block_B);

// Reads the block at the start of wire_B into `kept` and returns its bytes. kCorrupt for anything
// but a block of that many values.
Result<std::size_t> read_sparse_block(std::span<const std::byte> wire_B,
                                      std::size_t block_values,
                                      const FixedSizeFormat& format,
                                      SelectedValues& kept);

}  // namespace motley

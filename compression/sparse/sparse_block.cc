#include "compression/sparse/sparse_block.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "wire values are little-endian");

constexpr std::uint16_t kNotFinite = 0xFFFF;  // in place of a count
constexpr std::size_t kStep = 255;            // a byte of this value advances without a value

std::size_t mask_bytes(std::size_t block_values) {
  return (block_values + 7) / 8;
}

Error damaged(const char* cause) {
  return {ErrorCode::kCorrupt, "unreadable topk message", cause,
          "start both ends from one plan; if it happens again, check the network and the memory"};
}

std::byte* write_gaps(std::span<const std::uint16_t> places, std::byte* to) {
  std::size_t next = 0;  // the first possible position
  for (const std::size_t place : places) {
    std::size_t gap = place - next;
    for (; gap >= kStep; gap -= kStep) *to++ = static_cast<std::byte>(kStep);
    *to++ = static_cast<std::byte>(gap);
    next = place + 1;
  }
  return to;
}

// Gaps are never negative, so positions ascend whatever the bytes; a position stays within the
// block, so the loop ends. Returns the bytes read, or 0 if they are not `count` positions.
std::size_t read_gaps(std::span<const std::byte> wire_B,
                      std::size_t block_values,
                      std::size_t count,
                      SelectedValues& kept) {
  std::size_t at = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t byte = kStep;
    while (byte == kStep) {
      if (at == wire_B.size() || next >= block_values) return 0;
      byte = static_cast<std::size_t>(wire_B[at++]);
      next += byte;
    }
    if (next >= block_values) return 0;
    kept.places[i] = static_cast<std::uint16_t>(next++);
  }
  return at;
}

// The same for a mask.
std::size_t read_mask(std::span<const std::byte> wire_B,
                      std::size_t block_values,
                      std::size_t count,
                      SelectedValues& kept) {
  const std::size_t bytes = mask_bytes(block_values);
  if (wire_B.size() < bytes) return 0;
  kept.mask.fill(0);
  std::memcpy(kept.mask.data(), wire_B.data(), bytes);
  list_positions(kept);
  const bool right = kept.count == count && kept.places[count - 1] < block_values;
  return right ? bytes : 0;
}

}  // namespace

void list_positions(SelectedValues& kept) {
  static const ListPositions list = best_list_positions();
  kept.count = list(kept.mask, kept.places.data());
}

void select_first(SelectedValues& kept, std::size_t count) {
  MOTLEY_CHECK(count <= kept.count, "{} of {} kept values", count, kept.count);
  for (const std::uint16_t place : kept.selected_positions().subspan(count)) {
    kept.mask[place / 64] &= ~(std::uint64_t{1} << (place % 64));
  }
  kept.count = count;
}

std::size_t write_sparse_block(const SelectedValues& kept,
                               std::size_t block_values,
                               const FixedSizeFormat& format,
                               std::byte* block_B) {
  const auto head = kept.finite ? static_cast<std::uint16_t>(kept.count) : kNotFinite;
  std::memcpy(block_B, &head, sizeof head);
  std::byte* to = block_B + sizeof head;
  if (!kept.finite) return sizeof head;
  if (kept.count < mask_bytes(block_values)) {
    to = write_gaps(kept.selected_positions(), to);
  } else {
    std::memcpy(to, kept.mask.data(), mask_bytes(block_values));
    to += mask_bytes(block_values);
  }
  format.encode(kept.selected_values(), to);
  return static_cast<std::size_t>(to - block_B) + format.bytes(kept.count);
}

Result<std::size_t> read_sparse_block(std::span<const std::byte> wire_B,
                                      std::size_t block_values,
                                      const FixedSizeFormat& format,
                                      SelectedValues& kept) {
  std::uint16_t head = 0;
  if (wire_B.size() < sizeof head) return damaged("it ends before its last block");
  std::memcpy(&head, wire_B.data(), sizeof head);
  kept.finite = head != kNotFinite;
  kept.count = 0;
  if (!kept.finite) return sizeof head;
  if (head > block_values) return damaged("a block has more retained values than values");
  if (head == 0) return sizeof head;
  std::size_t at = sizeof head;
  const auto places_B = wire_B.subspan(at);
  const std::size_t place_bytes = head < mask_bytes(block_values)
                                      ? read_gaps(places_B, block_values, head, kept)
                                      : read_mask(places_B, block_values, head, kept);
  if (place_bytes == 0) return damaged("a block has another number of indices than it declares");
  at += place_bytes;
  if (wire_B.size() - at < format.bytes(head)) return damaged("it ends within a block");
  kept.count = head;
  format.decode(wire_B.data() + at, kept.selected_values());
  return at + format.bytes(head);
}

}  // namespace motley

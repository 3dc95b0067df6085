// What a virtual device holds in place of tensors: values that nobody reads as such, but that are
// encoded, sent, decoded and summed like real ones. Used by the compute thread; rooms that were
// lent and sums that are under way are filled by others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/boundary_size.h"
#include "pipeline/execute/stage_compute.h"
#include "rehearsal/noise.h"

namespace motley {

// Where messages of one boundary go. Nobody reads them, but no two are decoded to one place at
// once: there are more places than a schedule has receives of the boundary posted.
class MessageRooms {
 public:
  MessageRooms() = default;

  explicit MessageRooms(const BoundarySize& size) {
    for (Room& room : rooms_) {
      room.floats.resize(static_cast<std::size_t>(size.floats));
      room.exact.resize(static_cast<std::size_t>(size.exact_bytes));
    }
  }

  BoundaryRoom next() {
    Room& room = rooms_[taken_++ % rooms_.size()];
    return {room.floats, room.exact};
  }

 private:
  struct Room {
    std::vector<float> floats;
    std::vector<std::byte> exact;
  };

  std::array<Room, 4> rooms_;
  std::size_t taken_ = 0;
};

// Values that are summed over ranks, filled anew each step from the end to the beginning, as
// gradients become final. A step's filling is spread over its waiting.
class SummedGradient {
 public:
  SummedGradient() = default;

  // `place`: of its pieces among those of the rank.
  SummedGradient(std::size_t count, std::uint64_t place) : values_(count), place_(place) {}

  std::span<float> values() { return values_; }

  // A new step begins.
  void begin() { filled_from_ = values_.size(); }

  // Fills the next piece; false: all is filled.
  bool fill_piece(const Noise& noise, std::uint64_t stream) {
    if (filled_from_ == 0) return false;
    const std::size_t first = (filled_from_ - 1) / Noise::kPiece * Noise::kPiece;
    noise.fill(std::span(values_).subspan(first, filled_from_ - first), stream,
               place_ + first / Noise::kPiece);
    filled_from_ = first;
    return true;
  }

  void fill_down_to(std::size_t first, const Noise& noise, std::uint64_t stream) {
    while (filled_from_ > first) fill_piece(noise, stream);
  }

 private:
  std::vector<float> values_;
  std::uint64_t place_ = 0;
  std::size_t filled_from_ = 0;
};

}  // namespace motley

// The buffers of a simulated device in place of tensors: their values are not used, but are
// encoded, sent, decoded and all-reduced like real ones. Used by the compute thread; lent buffers
// and running all-reduces are written by other threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/wire_sizes.h"
#include "pipeline/execute/stage_compute.h"
#include "simulated/noise.h"

namespace motley {

// Receive buffers of one boundary. Their contents are not read, but no two messages may be decoded
// into one buffer at once: there are more buffers than a schedule has posted receives of the
// boundary.
class MessageBuffers {
 public:
  MessageBuffers() = default;

  explicit MessageBuffers(const BoundarySize& size) {
    for (MessageBuffer& buffer : buffers_) {
      buffer.floats.resize(static_cast<std::size_t>(size.floats));
      buffer.exact.resize(static_cast<std::size_t>(size.exact_bytes));
    }
  }

  BoundaryBuffer next() {
    MessageBuffer& buffer = buffers_[taken_++ % buffers_.size()];
    return {buffer.floats, buffer.exact};
  }

 private:
  struct MessageBuffer {
    std::vector<float> floats;
    std::vector<std::byte> exact;
  };

  std::array<MessageBuffer, 4> buffers_;
  std::size_t taken_ = 0;
};

// Values that are all-reduced, refilled each step from the end to the beginning as gradients become
// final. The filling is spread over the step's waits.
class ReducedGradient {
 public:
  ReducedGradient() = default;

  // `place`: the number of its first piece in the rank's noise.
  ReducedGradient(std::size_t count, std::uint64_t place) : values_(count), place_(place) {}

  std::span<float> values() { return values_; }

  // Starts a new step.
  void begin() { filled_from_ = values_.size(); }

  // Fills the next piece; false if everything is filled.
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

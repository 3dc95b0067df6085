// StageCompute: the computing of one rank for a batch. The executor decides when to compute; this
// interface defines how. The worker's implementation has torch layers (training/stage_trainer.h);
// tests use plain arithmetic. State between batches belongs to StageGradients and StageVotes.
//
// Buffers are lent: each stays valid until the call that consumes it. Several micro-batches may
// have one at once, and another thread may fill them. Owned and used by the compute thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/wire_sizes.h"
#include "pipeline/execute/batch_position.h"
#include "pipeline/schedule/action_rules.h"

namespace motley {

// A view that stays valid while `owner` is held, or, without an owner, until the next begin(). The
// receiver may overwrite the memory. Any thread may release the owner.
template <class Number>
struct OwnedValues {
  std::span<Number> values;  // empty if they lie in a device's own memory
  std::shared_ptr<const void> owner;
  // Waits until the values, which may be in transfer from a device, can be read. Returns an error,
  // which names them `words`, if the transfer fails. Empty: they can be read already. Any one
  // thread may call it.
  std::function<Result<void>(const std::string& words)> arrive;

  [[nodiscard]] Result<void> await(const std::string& words) const {
    return arrive ? arrive(words) : Result<void>();
  }
};

using OwnedBytes = OwnedValues<std::byte>;

// The values that cross a boundary in one direction: floats, and for an activation also the exact
// bytes, which are transferred bit-exactly. Owner and arrival are the same for both.
struct OwnedBoundary : OwnedValues<float> {
  std::span<const std::byte> exact;  // empty if it lies in a device's own memory
};

// Receive buffers for the values of a boundary.
struct BoundaryBuffer {
  std::span<float> floats;
  std::span<std::byte> exact;
};

// The values of a boundary as one message: the encoded floats, followed by the exact bytes.
struct BoundaryMessage {
  std::string codec;  // Codec::name()
  std::size_t floats = 0;
  std::size_t exact_bytes = 0;
  std::size_t bytes_max = 0;  // the message's size; exact if the codec has a fixed size
};

enum class BackwardPart {
  kWhole,
  // Returns the gradient of the input. On chunk 0 it also adds to the gradient of a tied parameter,
  // so that its all-reduce can overlap the rest.
  kInput,
  // Adds the gradients of the parameters; any time after the input part. The micro-batches of a
  // chunk run each part in the order of whole backwards.
  kWeights
};

class StageCompute {
 public:
  // Gradient-ready callback of a step's last backward that changes the chunk's gradients. Called
  // repeatedly with the index from which on they are final, from the end to the beginning, so that
  // the all-reduce can start. From then on another thread changes these values. When the backward
  // returns, all are final.
  using OnReady = std::function<void(std::size_t first)>;

  virtual ~StageCompute() = default;

  // Called before the first action of a schedule.
  virtual void begin(const BatchPosition& position) = 0;

  // On chunk 0: reads the micro-batch from the data and stores its inputs for chunk 0's forward.
  // Returns its targets. They stay valid until the micro-batch's forward on the last chunk if that
  // is on this rank, else until the next load.
  virtual std::span<const std::int32_t> load(MicroId micro) = 0;

  // On the last chunk, if the data is on another rank: the buffer for the received targets.
  virtual std::span<std::int32_t> targets_buffer(MicroId micro) = 0;

  // The size of a micro-batch's boundary between `chunk` and the next one. REQUIRES: one of the two
  // is on this rank.
  [[nodiscard]] virtual BoundarySize boundary_size(ChunkId chunk) const = 0;

  // Returns the receive buffer for an activation or a gradient from another rank. Called before the
  // action that uses the value.
  virtual BoundaryBuffer receive_buffer(const Value& value) = 0;

  // Moves the result of a forward or backward to host memory, which is readable once it has
  // arrived. Called immediately for results that are sent to another rank.
  virtual OwnedBoundary to_host(OwnedBoundary made) { return made; }

  // If the stage's device implements the codec, encoded messages instead of values are copied
  // between it and the host. Otherwise this and message_buffer() return nullopt, and values use
  // to_host() and receive_buffer(). Returns the message for the result of a forward or backward,
  // with the codec's own bytes. Called immediately.
  [[nodiscard]] virtual std::optional<OwnedBytes> message_to_host(
      const OwnedBoundary& /*made*/, const BoundaryMessage& /*message*/) {
    return std::nullopt;
  }

  // Returns the receive buffer for the encoded message of an activation or a gradient. Its length
  // is checked, but its bytes may be arbitrary.
  [[nodiscard]] virtual std::optional<std::span<std::byte>> message_buffer(
      const Value& /*value*/, const BoundaryMessage& /*message*/) {
    return std::nullopt;
  }

  // Passes the result of a forward or backward to its consumer on the same rank. It has no other
  // reader.
  virtual void hand_over_locally(const Value& value, OwnedBoundary made) = 0;

  // Returns the output; empty for the last chunk, which adds to the loss instead.
  virtual OwnedBoundary forward(ChunkId chunk, MicroId micro) = 0;
  // Returns the gradient of the input; empty for chunk 0 and of the part kWeights. `on_ready` may
  // be empty.
  virtual OwnedBoundary backward(ChunkId chunk,
                                 MicroId micro,
                                 BackwardPart part,
                                 const OnReady& on_ready) = 0;
};

}  // namespace motley

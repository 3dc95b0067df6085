// StageCompute: what one rank computes for a batch. The executor says when; this says how. The
// worker's implementation holds torch layers (training/stage_trainer.h); tests use plain
// arithmetic. What the rank keeps from batch to batch is told by StageGradients and StageVotes.
//
// Rooms are lent: each stays valid until the call that consumes it; several micro-batches may have
// theirs at once, and another thread may fill them. Owned and used by the compute thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/boundary_size.h"
#include "base/ids.h"
#include "base/result.h"
#include "pipeline/execute/batch_position.h"
#include "pipeline/schedule/action_rules.h"

namespace motley {

// Values that stay where they are while somebody holds their owner; without an owner until the next
// begin(). Who was given them may use their memory. Any thread may let go of the owner.
template <class Number>
struct OwnedValues {
  std::span<Number> values;  // empty where they lie in a device's own memory
  std::shared_ptr<const void> owner;
  // Returns when the values may be read, which are on their way from a device; an error, which
  // names them so, where they do not come. Empty: they may be read. Any one thread may call it.
  std::function<Result<void>(const std::string& words)> arrive;

  [[nodiscard]] Result<void> await(const std::string& words) const {
    return arrive ? arrive(words) : Result<void>();
  }
};

using OwnedBytes = OwnedValues<std::byte>;

// What crosses a boundary in one direction: floats, and beside those of an activation what is
// transferred bit-exactly. Both stay and arrive together.
struct OwnedBoundary : OwnedValues<float> {
  std::span<const std::byte> exact;  // empty where it lies in a device's own memory
};

// Where such values go.
struct BoundaryRoom {
  std::span<float> floats;
  std::span<std::byte> exact;
};

// All values that cross a boundary as one message: what a codec makes of the floats, and behind it
// the exact bytes.
struct BoundaryMessage {
  std::string codec;  // Codec::name()
  std::size_t floats = 0;
  std::size_t exact_bytes = 0;
  std::size_t bytes_max = 0;  // its bytes, exactly those where the codec has a fixed size
};

enum class BackwardPart {
  kWhole,
  // Returns the gradient of the input. Of chunk 0 it also adds what belongs to a tied parameter,
  // whose sum over ranks can then run beside the rest.
  kInput,
  // Adds the gradients of the parameters; any time after the input part. A chunk's micro-batches
  // pass each part in the order that whole backwards would have had.
  kWeights
};

class StageCompute {
 public:
  // Of the last backward of a step that changes the chunk's gradients: told again and again from
  // where on they are final, from the end to the beginning, so that summing can start. Another
  // thread changes these values from then on. When the backward returns all of them are.
  using OnFinal = std::function<void(std::size_t first)>;

  virtual ~StageCompute() = default;

  // Called before the first action of a schedule.
  virtual void begin(const BatchPosition& position) = 0;

  // Rank of chunk 0: takes the micro-batch from the data and keeps its inputs for chunk 0's
  // forward. Returns its targets, which stay valid until the micro-batch's forward on the last
  // chunk when that is here, else until the next load.
  virtual std::span<const std::int32_t> load(MicroId micro) = 0;

  // Rank of the last chunk, when the data is elsewhere: where the received targets go.
  virtual std::span<std::int32_t> targets_room(MicroId micro) = 0;

  // What of a micro-batch crosses from `chunk` to the next one. One of the two is here.
  [[nodiscard]] virtual BoundarySize boundary_size(ChunkId chunk) const = 0;

  // Where an activation or a gradient goes that comes from another rank, before its user runs.
  virtual BoundaryRoom room(const Value& value) = 0;

  // What a forward or backward has returned, where the host can read it once it has arrived: called
  // at once for what goes to another rank.
  virtual OwnedBoundary to_host(OwnedBoundary made) { return made; }

  // Where the stage's device has the codec too, messages go between it and the host instead of
  // values. Elsewhere this and message_room() give nothing, and the values go by to_host() and
  // room(). Here: the message of what a forward or backward has returned, with the codec's own
  // bytes, asked for at once.
  [[nodiscard]] virtual std::optional<OwnedBytes> message_to_host(
      const OwnedBoundary& /*made*/, const BoundaryMessage& /*message*/) {
    return std::nullopt;
  }

  // Where a message that means an activation or a gradient goes: room() for it. Any bytes may come
  // of the message's length.
  [[nodiscard]] virtual std::optional<std::span<std::byte>> message_room(
      const Value& /*value*/, const BoundaryMessage& /*message*/) {
    return std::nullopt;
  }

  // When its maker is here too: takes what that forward or backward has returned, and which nobody
  // else reads.
  virtual void hand(const Value& value, OwnedBoundary made) = 0;

  // Returns the output; empty for the last chunk, which adds to the loss instead.
  virtual OwnedBoundary forward(ChunkId chunk, MicroId micro) = 0;
  // Returns the gradient of the input; empty for chunk 0 and of the part kWeights. `on_final` may
  // be empty.
  virtual OwnedBoundary backward(ChunkId chunk,
                                 MicroId micro,
                                 BackwardPart part,
                                 const OnFinal& on_final) = 0;
};

}  // namespace motley

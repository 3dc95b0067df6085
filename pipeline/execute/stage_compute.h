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

using OwnedFloats = OwnedValues<float>;
using OwnedBytes = OwnedValues<std::byte>;

// The message that a codec makes of all values of a boundary.
struct BoundaryMessage {
  std::string codec;  // Codec::name()
  std::size_t floats = 0;
  std::size_t bytes_max = 0;  // exact if the codec has a fixed size
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
  using OnFinal = std::function<void(std::size_t first)>;

  virtual ~StageCompute() = default;

  // Called before the first action of a schedule.
  virtual void begin(const BatchPosition& position) = 0;

  // On chunk 0: reads the micro-batch from the data and stores its inputs for chunk 0's forward.
  // Returns its targets. They stay valid until the micro-batch's forward on the last chunk if that
  // is on this rank, else until the next load.
  virtual std::span<const std::int32_t> load(MicroId micro) = 0;

  // On the last chunk, if the data is on another rank: the buffer for the received targets.
  virtual std::span<std::int32_t> targets_room(MicroId micro) = 0;

  // The number of floats of a micro-batch that pass from `chunk` to the next one, and back as their
  // gradient. REQUIRES: one of the two chunks is on this rank.
  [[nodiscard]] virtual std::size_t boundary_floats(ChunkId chunk) const = 0;

  // The buffer for an activation or gradient from another rank, before its consumer runs.
  virtual std::span<float> room(const Value& value) = 0;

  // Makes the result of a forward or backward readable by the host, once it has arrived. Called at
  // once for values that go to another rank.
  virtual OwnedFloats to_host(OwnedFloats made) { return made; }

  // If the stage's device implements the codec, messages are copied between it and the host instead
  // of values. Otherwise this and message_room() return nullopt, and values pass through to_host()
  // and room(). Here: the codec's bytes for the result of a forward or backward, requested at once.
  [[nodiscard]] virtual std::optional<OwnedBytes> message_to_host(
      const OwnedFloats& /*made*/, const BoundaryMessage& /*message*/) {
    return std::nullopt;
  }

  // The buffer for a message that encodes an activation or gradient, in place of room(). The
  // received bytes are untrusted, but have the codec's length for that many floats.
  [[nodiscard]] virtual std::optional<std::span<std::byte>> message_room(
      const Value& /*value*/, const BoundaryMessage& /*message*/) {
    return std::nullopt;
  }

  // Passes the result of a forward or backward of this rank to its consumer here, the only reader.
  virtual void hand(const Value& value, OwnedFloats floats) = 0;

  // Returns the output; empty for the last chunk, which adds to the loss instead.
  virtual OwnedFloats forward(ChunkId chunk, MicroId micro) = 0;
  // Returns the gradient of the input; empty for chunk 0 and for kWeights. `on_final` may be empty.
  virtual OwnedFloats backward(ChunkId chunk,
                               MicroId micro,
                               BackwardPart part,
                               const OnFinal& on_final) = 0;
};

}  // namespace motley

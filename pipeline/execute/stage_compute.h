// StageCompute: what one rank computes. The executor says when; this says how. The worker's
// implementation holds torch layers (training/stage_trainer.h); tests use plain arithmetic.
//
// Rooms are lent: each stays valid until the call that consumes it; several micro-batches may have
// theirs at once, and another thread may fill them. Owned and used by the compute thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace motley {

// Which batch a run of the schedule works on.
struct BatchPosition {
  std::int64_t step = 1;  // 1 is the first
  bool training = true;   // false: evaluation
  std::uint64_t first_sample =
      0;  // of the global batch, in the source's training or held-out order
};

// Values that stay as they are while somebody holds their owner; without an owner until the next
// begin(). Any thread may read them and let go of the owner.
struct OwnedFloats {
  std::span<const float> values;
  std::shared_ptr<const void> owner;
};

class StageCompute {
 public:
  virtual ~StageCompute() = default;

  // Called before the first action of a schedule.
  virtual void begin(const BatchPosition& position) = 0;

  // Rank of chunk 0: takes the micro-batch from the data and keeps its inputs for chunk 0's
  // forward. Returns its targets, which stay valid until the micro-batch's forward on the last
  // chunk when that is here, else until the next load.
  virtual std::span<const std::int32_t> load(MicroId micro) = 0;

  // Rank of the last chunk, when the data is elsewhere: where the received targets go.
  virtual std::span<std::int32_t> targets_room(MicroId micro) = 0;

  // Sizes of what crosses the boundaries of `chunk`, and of a micro-batch's targets.
  [[nodiscard]] virtual std::size_t input_floats(ChunkId chunk) const = 0;   // every chunk but 0
  [[nodiscard]] virtual std::size_t output_floats(ChunkId chunk) const = 0;  // all but the last
  [[nodiscard]] virtual std::size_t targets_count() const = 0;

  // Where the input of `chunk` goes before its forward (every chunk but 0), when it comes from
  // another rank.
  virtual std::span<float> input_room(ChunkId chunk, MicroId micro) = 0;
  // When the chunk before it is here too: takes what its forward has returned, and which nobody
  // else reads.
  virtual void hand_input(ChunkId chunk, MicroId micro, OwnedFloats values) = 0;
  // Returns the output; empty for the last chunk, which adds to the loss instead.
  virtual OwnedFloats forward(ChunkId chunk, MicroId micro) = 0;

  // Where the gradient of the output of `chunk` goes before its backward (every chunk but the
  // last), when it comes from another rank.
  virtual std::span<float> gradient_room(ChunkId chunk, MicroId micro) = 0;
  // When the chunk behind it is here too: takes what its backward has returned, and which nobody
  // else reads.
  virtual void hand_gradient(ChunkId chunk, MicroId micro, OwnedFloats values) = 0;
  // Returns the gradient of the input; empty for chunk 0.
  virtual OwnedFloats backward(ChunkId chunk, MicroId micro) = 0;
  // The same in two parts, of which the second may come any time later: the first returns the
  // gradient of the input, the second adds the gradients of the parameters. Of chunk 0 the first
  // adds what belongs to a tied parameter too, whose sum over ranks can then run beside the rest. A
  // chunk's micro-batches pass each part in the order that backward() would have had.
  virtual OwnedFloats backward_input(ChunkId chunk, MicroId micro) = 0;
  virtual void backward_weight(ChunkId chunk, MicroId micro) = 0;

  // The gradients of the chunk, but for those of a tied parameter that other ranks use too. Summed
  // in place over the chunk's replicas from its last backward on, as many on each, and in one place
  // from begin() to the step.
  virtual std::span<float> gradients(ChunkId chunk) = 0;

  // Called before the chunk's last backward (or backward_weight) of a step, which may then say from
  // where on gradients(chunk) is final, again and again while it goes from the end to the
  // beginning, so that summing can start; another thread changes these values from then on. When
  // the backward returns all of them are.
  using OnFinal = std::function<void(std::size_t first)>;

  virtual void tell_final(ChunkId chunk, OnFinal on_final) {
    (void)chunk;
    (void)on_final;
  }

  // The gradient of the tied parameter, of the uses that are here; summed in place over the ranks
  // that hold a use, and not in gradients(). Only called on such a rank, where others have one too.
  virtual std::span<float> tied_gradient() = 0;

  // Called where chunk 0 or the last chunk is, before tied_gradient() is summed: after the step's
  // last backward or backward_input of chunk 0 and backward or backward_weight of the last chunk.
  virtual void end_tied_gradient() {}

  // What this rank gives to the vote: at most vote_bytes_max() bytes.
  [[nodiscard]] virtual std::size_t vote_bytes_max() const = 0;
  virtual std::vector<std::byte> vote() = 0;
  // Every rank's vote, [Rank], before the step. Not trusted: kCorrupt when one is malformed.
  [[nodiscard]] virtual Result<void> count_votes(
      const std::vector<std::vector<std::byte>>& votes) = 0;
  // Updates the parameters or skips, as the votes say; whether it updated them.
  virtual bool step() = 0;
};

}  // namespace motley

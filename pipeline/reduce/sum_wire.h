// SumWire: how the values of a sum's messages come from one rank to another. Between machines they
// travel as an encoder makes them. Inside a machine they are fp32: they travel as they are, or,
// between ranks that share memory, stand on the sender's board (LocalBoards), and the message that
// says so is empty. Which of the two, both ends know.
//
// Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/buffer.h"
#include "compression/codec/codec.h"
#include "compression/kernels/sum_kernels.h"
#include "pipeline/reduce/local_boards.h"
#include "pipeline/reduce/slice_encoder.h"
#include "pipeline/reduce/sum_id.h"
#include "pipeline/schedule/allreduce_plan.h"

namespace motley {

class SumWire {
 public:
  // A message of a bucket in a step.
  struct Message {
    const ReduceMessage& message;
    std::size_t bucket = 0;
    std::int64_t step = 1;
  };

  struct Came {
    Message message;
    std::size_t order = 0;  // of the sender's term
    std::span<const std::byte> payload;
  };

  // Of a sum of which at most `window` buckets are under way. What is lent must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<SumWire>> make(FrameLink& link,
                                                             Rank self,
                                                             const AllreducePlan& plan,
                                                             SliceEncoder& encoder,
                                                             std::size_t window);

  // What can is shown instead of sent from the next message on. All of a machine call it after the
  // same run, once. Errors as LocalBoards::agree.
  [[nodiscard]] Result<void> share_memory(const SumId& name, std::int64_t step, Patience patience);

  [[nodiscard]] bool has_agreed() const { return boards_.has_value(); }

  // Whether the message is empty: its values are read where the sender shows them.
  [[nodiscard]] bool is_shown(const ReduceMessage& message) const;
  // Of values that it says are there.
  [[nodiscard]] std::size_t shown_bytes(const ReduceMessage& message) const;
  // Upper bound of its payload, in bytes.
  [[nodiscard]] std::size_t bytes_max(const ReduceMessage& message) const;

  // Shows the values, which are the message's, to all who read this rank's board. REQUIRES:
  // is_shown(message).
  void show(const Message& shown, std::span<const float> values);
  // Writes them to `wire`, returns the bytes written and leaves in `values` what the receiver makes
  // of them. REQUIRES: wire.size() >= bytes_max(message).
  std::size_t encode(const Message& sent, std::span<float> values, std::span<std::byte> wire);

  // Sets `values` to what came. kCorrupt when the payload does not fit.
  [[nodiscard]] Result<void> decode(const Came& came, std::span<float> values) const;
  // Makes `own`, this rank's term of the same values, the sum of it and of all that came, in their
  // order. Fails as decode(). REQUIRES: `came` ascends in order and is not empty.
  [[nodiscard]] Result<void> add(std::span<const Came> came,
                                 std::size_t own_order,
                                 std::span<float> own);

 private:
  SumWire(FrameLink& link,
          Rank self,
          const AllreducePlan& plan,
          SliceEncoder& encoder,
          std::size_t window,
          std::unique_ptr<const Codec> plain);

  [[nodiscard]] std::size_t slot_of(const Message& message) const;
  [[nodiscard]] std::size_t place_of(const Message& message) const;
  [[nodiscard]] std::span<const float> shown(const Message& came) const;
  [[nodiscard]] Result<void> add_one(const Came& came, std::span<float> sum) const;

  FrameLink& link_;
  const Rank self_;
  SliceEncoder& encoder_;
  const std::size_t window_;
  const std::unique_ptr<const Codec> plain_;  // inside a machine
  const SumKernels sums_ = best_sum_kernels();
  std::vector<float> total_;               // of terms before this rank's
  std::vector<Rank> neighbours_;           // on this rank's machine
  std::vector<std::size_t> first_values_;  // [bucket]
  std::size_t longest_bucket_ = 0;         // in values
  std::optional<LocalBoards> boards_;      // once share_memory() was called
};

}  // namespace motley

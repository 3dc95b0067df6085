// AllreduceChannel: how the values of a sum's messages come from one rank to another. Between
// machines they travel as an encoder makes them. Inside a machine they are fp32: they travel as
// they are, or, between ranks that share memory, stand on the sender's board (SharedReduceBuffers),
// and the message that says so is empty. Which of the two, both ends know.
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
#include "compression/codec/codec.h"
#include "compression/kernels/sum_kernels.h"
#include "pipeline/reduce/allreduce_id.h"
#include "pipeline/reduce/shared_reduce_buffers.h"
#include "pipeline/reduce/slice_encoder.h"
#include "pipeline/schedule/allreduce_plan.h"
#include "pipeline/schedule/bucket_role.h"

namespace motley {

class AllreduceChannel {
 public:
  struct Came {
    const ExpectedMessage* expected = nullptr;
    std::span<const std::byte> payload;
  };

  // Of a sum of which at most `window` buckets are under way. roles: this rank's, [bucket]. What is
  // lent must outlive it, the roles included.
  [[nodiscard]] static Result<std::unique_ptr<AllreduceChannel>> make(
      Rank self,
      const AllreducePlan& plan,
      std::span<const BucketRole> roles,
      SliceEncoder& encoder,
      std::size_t window);

  // What can is shown instead of sent from the next message on. All of a machine call it after the
  // same run, once. Errors as SharedReduceBuffers::agree.
  [[nodiscard]] Result<void> share_memory(FrameLink& link,
                                          const AllreduceId& name,
                                          std::int64_t step,
                                          Patience patience);

  [[nodiscard]] bool has_agreed() const { return boards_.has_value(); }

  // Whether any message inside the machine is empty from now on.
  [[nodiscard]] bool shows_any() const { return boards_ && boards_->are_read(); }

  // Whether the message is empty: its values are read where the sender shows them.
  [[nodiscard]] bool is_shown(const ReduceMessage& message) const;
  // Of values that it says are there.
  [[nodiscard]] std::size_t shown_bytes(const ReduceMessage& message) const;
  // Upper bound of its payload, in bytes.
  [[nodiscard]] std::size_t bytes_max(const ReduceMessage& message) const;

  // Shows the values, which are the message's, to all who read this rank's board. REQUIRES:
  // is_shown(shown), and it is of the bucket.
  void show(std::size_t bucket, const ReduceMessage& shown, std::span<const float> values);
  // Writes them to `wire`, returns the bytes written and leaves in `values` what the receiver makes
  // of them. REQUIRES: wire.size() >= bytes_max(sent).
  std::size_t encode(const ReduceMessage& sent,
                     std::int64_t step,
                     std::span<float> values,
                     std::span<std::byte> wire);

  // Sets `values` to what came of the bucket. kCorrupt when the payload does not fit.
  [[nodiscard]] Result<void> decode(std::size_t bucket,
                                    const Came& came,
                                    std::span<float> values) const;
  // Makes `own`, this rank's term of the same values, the sum of it and of all that came, in their
  // order. Fails as decode(). REQUIRES: `came` ascends in order and is not empty.
  [[nodiscard]] Result<void> add(std::size_t bucket,
                                 std::span<const Came> came,
                                 std::size_t own_order,
                                 std::span<float> own);

 private:
  AllreduceChannel(Rank self,
                   const AllreducePlan& plan,
                   std::span<const BucketRole> roles,
                   SliceEncoder& encoder,
                   std::size_t window,
                   std::unique_ptr<const Codec> plain);

  [[nodiscard]] std::size_t slot_of(std::size_t bucket, ReducePhase phase) const;
  [[nodiscard]] std::size_t place_of(std::size_t bucket, ValueRange values) const;
  [[nodiscard]] std::span<const float> on_board_of(std::size_t bucket,
                                                   const ReduceMessage& came) const;
  [[nodiscard]] Result<void> add_one(std::size_t bucket,
                                     const Came& came,
                                     std::span<float> sum) const;

  const Rank self_;
  const std::span<const BucketRole> roles_;  // [bucket]
  SliceEncoder& encoder_;
  const std::size_t window_;
  const std::unique_ptr<const Codec> plain_;  // inside a machine
  const SumKernels sums_ = best_sum_kernels();
  std::vector<float> total_;                   // of terms before this rank's
  std::vector<Rank> neighbours_;               // on this rank's machine
  std::optional<SharedReduceBuffers> boards_;  // once share_memory() was called
};

}  // namespace motley

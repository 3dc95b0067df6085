// AllreduceChannel: encodes and decodes the messages of an all-reduce. Values between machines are
// encoded by a SliceEncoder. Values inside a machine are fp32: they are the payload, or, between
// ranks that share memory, are published in the sender's shared buffer (SharedReduceBuffers) and
// announced by an empty message. Both ends know which of the two applies.
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
#include "compression/kernels/add_kernels.h"
#include "pipeline/collectives/allreduce_id.h"
#include "pipeline/collectives/shared_reduce_buffers.h"
#include "pipeline/collectives/slice_encoder.h"
#include "pipeline/schedule/allreduce_plan.h"
#include "pipeline/schedule/bucket_role.h"

namespace motley {

class AllreduceChannel {
 public:
  struct Received {
    const ExpectedMessage* expected = nullptr;
    std::span<const std::byte> payload;
  };

  // For an all-reduce with at most `window` buckets in flight. roles: this rank's, [bucket].
  // `roles` and `encoder` must outlive it; the plan is only read here.
  [[nodiscard]] static Result<std::unique_ptr<AllreduceChannel>> make(
      Rank self,
      const AllreducePlan& plan,
      std::span<const BucketRole> roles,
      SliceEncoder& encoder,
      std::size_t window);

  // Agrees on shared memory with the other ranks of the machine: from the next message on, ranks
  // that can share memory publish values instead of sending them. All ranks of a machine call it
  // once, after the same run. Errors as SharedReduceBuffers::agree.
  [[nodiscard]] Result<void> share_memory(FrameLink& link,
                                          const AllreduceId& id,
                                          std::int64_t step,
                                          StallTimeout stall_timeout);

  [[nodiscard]] bool has_agreed() const { return buffers_.has_value(); }

  // Whether values of any message inside the machine are published instead of sent.
  [[nodiscard]] bool publishes_any() const { return buffers_ && buffers_->are_used(); }

  // Whether the message is empty: its values are read from the sender's shared buffer.
  [[nodiscard]] bool is_published(const ReduceMessage& message) const;
  // Bytes of the message's values in the sender's shared buffer; 0 unless it is_published().
  [[nodiscard]] std::size_t published_bytes(const ReduceMessage& message) const;
  // Upper bound of the message's payload, in bytes.
  [[nodiscard]] std::size_t bytes_max(const ReduceMessage& message) const;

  // Writes the values of the message into this rank's shared buffer, for all its readers. REQUIRES:
  // is_published(message), and the message is of the bucket.
  void publish(std::size_t bucket, const ReduceMessage& message, std::span<const float> values);
  // Writes the values to `wire`, returns the bytes written, and leaves in `values` what the
  // receiver decodes. REQUIRES: wire.size() >= bytes_max(message).
  std::size_t encode(const ReduceMessage& message,
                     std::int64_t step,
                     std::span<float> values,
                     std::span<std::byte> wire);

  // Sets `values` to those of the received message. kCorrupt if the payload does not fit.
  [[nodiscard]] Result<void> decode(std::size_t bucket,
                                    const Received& received,
                                    std::span<float> values) const;
  // Sets `own`, this rank's term, to the sum of all terms, added in ascending order; `own_order` is
  // the position of this rank's term. Errors as decode(). REQUIRES: `received` are of the values of
  // `own`, ascend in order and are not empty.
  [[nodiscard]] Result<void> add(std::size_t bucket,
                                 std::span<const Received> received,
                                 std::size_t own_order,
                                 std::span<float> own);

 private:
  AllreduceChannel(Rank self,
                   const AllreducePlan& plan,
                   std::span<const BucketRole> roles,
                   SliceEncoder& encoder,
                   std::size_t window,
                   std::unique_ptr<const Codec> fp32_codec);

  [[nodiscard]] std::size_t slot_of(std::size_t bucket, ReducePhase phase) const;
  // Of the values in a slot.
  [[nodiscard]] std::size_t offset_of(std::size_t bucket, ValueRange values) const;
  // The message's values in the sender's shared buffer.
  [[nodiscard]] std::span<const float> published(std::size_t bucket,
                                                 const ReduceMessage& message) const;
  [[nodiscard]] Result<void> add_one(std::size_t bucket,
                                     const Received& received,
                                     std::span<float> sum) const;

  const Rank self_;
  const std::span<const BucketRole> roles_;  // [bucket]
  SliceEncoder& encoder_;
  const std::size_t window_;
  const std::unique_ptr<const Codec> fp32_codec_;  // inside a machine
  const AddKernels kernels_ = best_add_kernels();
  std::vector<float> prefix_sum_;               // of the terms before this rank's
  std::vector<Rank> neighbours_;                // the other ranks of this machine
  std::optional<SharedReduceBuffers> buffers_;  // set by share_memory()
};

}  // namespace motley

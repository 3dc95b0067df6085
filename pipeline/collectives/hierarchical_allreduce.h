// HierarchicalAllreduce: all-reduces a gradient in place over the ranks of its process group (R,
// T), by the messages of an AllreducePlan.
//
// Several buckets are in flight at once, each in a phase of its own, so that links carry data in
// both directions while this rank adds, encodes or waits. Values inside a machine are fp32, and
// from the second step on ranks that share memory read them in place; values between machines are
// encoded (AllreduceChannel).
//
// The order of addition is fixed: the ranks of a machine in ascending order, then the machines in
// the order of their first ranks. So the sum has the same bits on all ranks, in whatever order
// messages arrive, and, without a lossy encoder, for every bucket size and window. With a lossy
// encoder all ranks still have the same bits: a rank that encodes values replaces them by the
// decoded ones.
//
// Used by one thread, which may start a run before all values are final. Wire format:
// docs/formats/frame.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/buffer_pool.h"
#include "pipeline/collectives/active_bucket.h"
#include "pipeline/collectives/allreduce_channel.h"
#include "pipeline/collectives/allreduce_id.h"
#include "pipeline/collectives/ready_watermark.h"
#include "pipeline/collectives/slice_encoder.h"
#include "pipeline/schedule/allreduce_plan.h"
#include "pipeline/schedule/bucket_role.h"

namespace motley {

// A slice that a rank encodes in every step.
struct EncodedSlice {
  WireSlice slice;
  // After a change of the slices: of all slices of these values, on all ranks, this is the one that
  // takes over the error-feedback state of all former ones.
  bool takes_over = false;
};

struct HierarchicalAllreduceOptions {
  // Buckets in flight at once. The messages of each take about 4 buckets' memory. Between ranks
  // that share memory they take none after the first step, but a bucket in a shared buffer takes
  // one.
  int window = 12;
  StallTimeout stall_timeout = 60;  // longest wait for one message
};

class HierarchicalAllreduce {
 public:
  // All members of the group make it with the same id, plan and window. The link and the encoder
  // are borrowed and must outlive it. kConfig if there are more buckets than frames can number.
  // REQUIRES: self is in the plan; window > 0.
  [[nodiscard]] static Result<std::unique_ptr<HierarchicalAllreduce>> make(
      FrameLink& link,
      Rank self,
      const AllreduceId& id,
      const AllreducePlan& plan,
      SliceEncoder& encoder,
      const HierarchicalAllreduceOptions& options);

  // Called by all members of the group, each with as many values as the plan has; the first step is
  // 1. Reads and writes no value before the watermark reports that it is final. Returns the seconds
  // spent waiting for messages. kPeer if a rank is lost or late, kCorrupt if a message does not
  // fit, kInternal if the watermark was abandoned; after an error the values are undefined and this
  // object must not run again. The first run ends with an agreement on shared memory, which waits
  // for the neighbours, and which abandoning the watermark does not interrupt. REQUIRES:
  // `watermark` notifies notifier().
  [[nodiscard]] Result<double> run(std::int64_t step,
                                   std::span<float> values,
                                   const ReadyWatermark& watermark);

  // The same with values that are all final.
  [[nodiscard]] Result<double> run(std::int64_t step, std::span<float> values);

  [[nodiscard]] const std::shared_ptr<Notifier>& notifier() const { return notifier_; }

  // The slices that this rank encodes in every step; no value is in two of them.
  [[nodiscard]] std::vector<EncodedSlice> encoded_slices() const;

 private:
  using Incoming = ActiveBucket::Incoming;
  using Outgoing = ActiveBucket::Outgoing;

  HierarchicalAllreduce(FrameLink& link,
                        Rank self,
                        const AllreduceId& id,
                        const AllreducePlan& plan,
                        SliceEncoder& encoder,
                        const HierarchicalAllreduceOptions& options,
                        std::vector<BucketRole> roles,
                        std::unique_ptr<AllreduceChannel> channel);

  void begin(std::size_t bucket);
  [[nodiscard]] Error abandoned() const;
  Result<bool> advance(ActiveBucket& active);
  Result<void> wait_for_any(const ActiveBucket& oldest);
  Result<void> finish_receive(const ActiveBucket& active, Incoming& incoming);
  Result<void> finish_send(const ActiveBucket& active, Outgoing& outgoing);

  Result<void> end_phase(ActiveBucket& active);
  void send_phase(ActiveBucket& active);
  void send_same_range(ActiveBucket& active, std::span<const ReduceMessage> messages);

  [[nodiscard]] Buffer encode(const ReduceMessage& message);

  [[nodiscard]] ActiveBucket& slot(std::size_t bucket);
  [[nodiscard]] std::span<float> at(ValueRange range) const;
  [[nodiscard]] std::string context_of(const ActiveBucket& active) const;

  FrameLink& link_;
  const AllreduceId id_;
  SliceEncoder& encoder_;
  const StallTimeout stall_timeout_;
  const std::vector<BucketRole> roles_;              // [bucket]
  const std::unique_ptr<AllreduceChannel> channel_;  // borrows roles_
  const std::size_t value_count_;
  const std::size_t machine_;          // of this rank, in the plan
  const std::size_t local_rank_;       // of this rank, in its machine
  const bool has_owners_;              // false: every machine adds up all values
  std::vector<ActiveBucket> actives_;  // [bucket % window]
  const std::shared_ptr<Notifier> notifier_ =
      std::make_shared<Notifier>();  // of all messages in flight and the watermark
  BufferPool buffers_;
  std::vector<AllreduceChannel::Received> received_;  // of one range of values, in end_phase()

  std::int64_t step_ = 0;  // of the current run
  std::span<float> values_;
  double wait_s_ = 0;
};

}  // namespace motley

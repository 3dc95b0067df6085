// HierarchicalAllreduce: the sum of a gradient over the ranks that hold it (R, T), in place, by the
// messages of an AllreducePlan.
//
// Several buckets are under way at once, each in a phase of its own, so that a wire has work in
// both directions while this rank adds up, encodes or waits for somebody else. Inside a machine
// values are fp32, and from the second step on ranks that share memory read them in place; between
// machines they travel as the encoder makes them (AllreduceChannel).
//
// The order of adding is fixed: the ranks of a machine as they are numbered, then the machines in
// the order of their first ranks. So the sum has the same bits on all ranks, whichever message
// comes first, and, without a lossy encoder, for every size of bucket and window. With one, the
// ranks still agree bit by bit: whoever encodes goes on with what the others decode.
//
// Used by one thread, which may begin before all values are there. Wire format:
// docs/formats/frame.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/buffer_pool.h"
#include "pipeline/reduce/allreduce_channel.h"
#include "pipeline/reduce/allreduce_id.h"
#include "pipeline/reduce/ready_watermark.h"
#include "pipeline/reduce/slice_encoder.h"
#include "pipeline/schedule/allreduce_plan.h"
#include "pipeline/schedule/bucket_role.h"

namespace motley {

// A slice that a rank encodes in every step.
struct EncodedSlice {
  WireSlice slice;
  // Of all slices of these values, on whatever rank, the one that goes on with what all of them
  // kept, where they are no longer the same.
  bool takes_over = false;
};

struct HierarchicalSumOptions {
  // Buckets under way at once. Messages of each take about 4 buckets' memory. Between ranks that
  // share memory they take none after the first step, but what a board shows of a bucket takes one.
  int window = 12;
  Patience patience = 60;  // longest wait for one message
};

class HierarchicalAllreduce {
 public:
  // All holders make it with the same name, plan and window. What is lent must outlive it. kConfig
  // when there are more buckets than frames can number. REQUIRES: self is in the plan; window > 0.
  [[nodiscard]] static Result<std::unique_ptr<HierarchicalAllreduce>> make(
      FrameLink& link,
      Rank self,
      const AllreduceId& name,
      const AllreducePlan& plan,
      SliceEncoder& encoder,
      const HierarchicalSumOptions& options);

  // Called by all holders, with as many values each as the plan has; the first step is 1. Reads and
  // writes no value before the mark says that it is final: `mark` rings bell(). Returns the seconds
  // spent waiting for messages. kPeer when a rank is lost or late, kCorrupt when a message does not
  // fit, kInternal when the mark was abandoned; the values are then worthless, and so is this
  // object. The first run ends with an agreement on memory, which an abandoned mark does not cut
  // short: it waits for neighbours that have begun the run too.
  [[nodiscard]] Result<double> run(std::int64_t step,
                                   std::span<float> values,
                                   const ReadyWatermark& mark);

  // Does the same with values that are all final.
  [[nodiscard]] Result<double> run(std::int64_t step, std::span<float> values);

  [[nodiscard]] const std::shared_ptr<Bell>& bell() const { return bell_; }

  // What this rank gives its encoder: no value in two of them.
  [[nodiscard]] std::vector<EncodedSlice> encoded_slices() const;

 private:
  struct Incoming {
    const ExpectedMessage* expected = nullptr;
    PendingFrame frame;  // until it was waited for
    Buffer buffer;       // from then on
  };

  struct Outgoing {
    Pending pending;
    Rank to;
  };

  // A bucket under way.
  struct Active {
    std::size_t bucket = 0;
    std::size_t phase = 0;  // whose messages it waits for; kReducePhases: only for its sends
    std::array<std::vector<Incoming>, kReducePhases> incoming;
    std::vector<Outgoing> outgoing;

    [[nodiscard]] bool is_done() const { return phase == kReducePhases && outgoing.empty(); }
  };

  HierarchicalAllreduce(FrameLink& link,
                        Rank self,
                        const AllreduceId& name,
                        const AllreducePlan& plan,
                        SliceEncoder& encoder,
                        const HierarchicalSumOptions& options,
                        std::vector<BucketRole> roles,
                        std::unique_ptr<AllreduceChannel> wire);

  [[nodiscard]] bool may_begin(std::size_t bucket, const ReadyWatermark& mark) const;
  void begin(std::size_t bucket);
  [[nodiscard]] Error abandoned() const;
  Result<bool> advance(Active& active);
  Result<void> wait_for_any(const Active& oldest);
  [[nodiscard]] static Rank missing_from(const Active& active);
  Result<void> take(const Active& active, Incoming& incoming);
  Result<void> take_back(const Active& active, Outgoing& outgoing);
  [[nodiscard]] static bool all_came(const Active& active);

  Result<void> end_phase(Active& active);
  void send_phase(Active& active);
  void send_alike(Active& active, std::span<const ReduceMessage> messages);

  [[nodiscard]] Buffer encode(const ReduceMessage& message);
  [[nodiscard]] Buffer copy_of(const Buffer& buffer);

  [[nodiscard]] Active& slot(std::size_t bucket);
  [[nodiscard]] std::span<float> at(ValueRange range) const;
  [[nodiscard]] std::string words(const Active& active) const;

  FrameLink& link_;
  const AllreduceId name_;
  SliceEncoder& encoder_;
  const Patience patience_;
  const std::vector<BucketRole> roles_;           // [bucket]
  const std::unique_ptr<AllreduceChannel> wire_;  // reads the roles
  const std::size_t value_count_;
  const std::size_t machine_;  // of this rank
  const std::size_t place_;
  const bool has_owners_;        // else the machines add up everything alike
  std::vector<Active> actives_;  // [bucket % window]
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();  // of all that is under way
  BufferPool buffers_;
  std::vector<AllreduceChannel::Came> came_;  // for one range of values, while they are taken

  std::int64_t step_ = 0;  // of the run under way
  std::span<float> values_;
  double wait_s_ = 0;
};

}  // namespace motley

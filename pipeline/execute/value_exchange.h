// ValueExchange: brings the values of a step (pipeline/schedule/action_rules.h) from the actions of
// this rank that make them to whoever needs them: to a chunk beside it at once, to another rank
// when the schedule says so. Until then they are kept, by value, in whatever order they are sent.
//
// Sends and receives are carried out by the transport's thread, and where computing leaves the
// processor free messages are encoded and decoded on two more. Used by the compute thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/buffer_pool.h"
#include "compression/codec/codec.h"
#include "pipeline/execute/frame_receiver.h"
#include "pipeline/execute/frame_sender.h"
#include "pipeline/execute/stage_compute.h"
#include "pipeline/schedule/action_rules.h"

namespace motley {

class ValueExchange {
 public:
  // What it took of the compute thread.
  struct Times {
    double wait_s = 0;   // for messages
    double codec_s = 0;  // encoding, decoding, handing over
  };

  // What is lent must outlive it. codecs: [ChunkId], of the boundary after it.
  ValueExchange(Rank self,
                FrameLink& link,
                StageCompute& compute,
                std::vector<std::unique_ptr<const Codec>> codecs,
                Patience patience,
                bool codecs_beside);

  // Before the first action of a step; forgets what an abandoned one left. The schedule, which must
  // have passed validate_schedule, is lent until the next call.
  void begin(const Schedule& schedule, const BatchPosition& position);

  // RT, RA, RG.
  void post(const Action& action);

  // Waits for what the action needs of other ranks. kPeer when it does not come in time, kCorrupt
  // when it does not match.
  [[nodiscard]] Result<void> receive(const Action& action);

  // Takes what a load, a forward or a backward has made.
  void take_targets(const Action& load, std::span<const std::int32_t> targets);
  void take(const Action& action, OwnedBoundary made);

  // ST, SA, SG. kPeer when an earlier message could not be sent.
  [[nodiscard]] Result<void> send(const Action& action);

  // Why sends failed that were to go on beside the compute thread.
  [[nodiscard]] std::optional<Error> send_failure() { return sender_.failure(); }

  // After the last action: waits until all messages have been taken.
  [[nodiscard]] Result<void> finish();

  // Since begin().
  [[nodiscard]] const Times& times() const { return times_; }

 private:
  void post_targets(const Value& value);
  void post_boundary(const Value& value);
  // How it is transferred.
  [[nodiscard]] BoundaryMessage message_of(const Value& value) const;
  void expect(const Value& value, std::size_t bytes_max, FrameReceiver::Read read);
  [[nodiscard]] FrameId frame_of(const Value& value) const;
  [[nodiscard]] const Codec& codec_of(const Value& value) const;
  [[nodiscard]] FrameSender::Frame targets_frame(const Value& value);
  [[nodiscard]] FrameSender::Frame boundary_frame(const Value& value);

  const Rank self_;
  FrameLink& link_;
  StageCompute& compute_;
  const std::vector<std::unique_ptr<const Codec>> codecs_;
  const Patience patience_;
  const bool codecs_beside_;

  std::optional<ActionRules> rules_;  // of the schedule under way
  std::int64_t step_ = 0;
  std::map<Value, std::variant<OwnedBoundary, OwnedBytes>> unsent_;  // bytes: encoded by a device
  std::map<Value, std::vector<std::int32_t>> unsent_targets_;
  Times times_;
  BufferPool buffers_;  // of receives
  FrameSender sender_;
  FrameReceiver receiver_;
};

}  // namespace motley

// ValueExchange: moves the values of a step (pipeline/schedule/action_rules.h) from the actions of
// this rank that make them to their consumers: to a chunk of this rank at once, to another rank
// when the schedule sends them. Until then they are stored by value, in any order of sending.
//
// The transport's thread carries out sends and receives. If computing leaves the processor free,
// two more threads encode and decode messages. Used by the compute thread alone.
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
  // Time of the compute thread.
  struct Times {
    double wait_s = 0;   // waiting for messages
    double codec_s = 0;  // encoding, decoding, passing
  };

  // References must outlive it. codecs: [ChunkId], of the boundary after it.
  ValueExchange(Rank self,
                FrameLink& link,
                StageCompute& compute,
                std::vector<std::unique_ptr<const Codec>> codecs,
                StallTimeout stall_timeout,
                bool overlaps_codecs);

  // Before the first action of a step; drops the state of an abandoned step. The schedule, which
  // must have passed validate_schedule, is borrowed until the next call.
  void begin(const Schedule& schedule, const BatchPosition& position);

  // RT, RA, RG.
  void post(const Action& action);

  // Waits for the action's inputs from other ranks. kPeer if one is late, kCorrupt if one does not
  // match.
  [[nodiscard]] Result<void> receive(const Action& action);

  // Stores the result of a load, a forward or a backward.
  void take_targets(const Action& load, std::span<const std::int32_t> targets);
  void take(const Action& action, OwnedBoundary made);

  // ST, SA, SG. kPeer if an earlier message could not be sent.
  [[nodiscard]] Result<void> send(const Action& action);

  // The error of an asynchronous send.
  [[nodiscard]] std::optional<Error> send_failure() { return sender_.failure(); }

  // After the last action: waits until all sends have completed.
  [[nodiscard]] Result<void> finish();

  // Since begin().
  [[nodiscard]] const Times& times() const { return times_; }

 private:
  void post_targets(const Value& value);
  void post_boundary(const Value& value);
  // The format in which the value is transferred.
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
  const StallTimeout stall_timeout_;
  const bool overlaps_codecs_;

  std::optional<ActionRules> rules_;  // of the current schedule
  std::int64_t step_ = 0;
  std::map<Value, std::variant<OwnedBoundary, OwnedBytes>> unsent_;  // bytes: encoded by a device
  std::map<Value, std::vector<std::int32_t>> unsent_targets_;
  Times times_;
  BufferPool buffers_;  // of receives
  FrameSender sender_;
  FrameReceiver receiver_;
};

}  // namespace motley

// Executor: runs one rank's list of actions. One switch over the kinds, no policy: what is posted
// when, and in which order things are computed, is decided by the schedule alone.
//
// Sends and receives are posted here and carried out by the transport's thread, sums over replicas
// by a thread of their own from the last backward of a chunk on, and where computing leaves the
// processor free messages are encoded and decoded on two more, while the compute thread goes on;
// the only waits are for an input that has not arrived yet, each with a deadline. Used by the
// compute thread alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/buffer_pool.h"
#include "compression/codec/codec.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/execute/activity.h"
#include "pipeline/execute/frame_receiver.h"
#include "pipeline/execute/frame_sender.h"
#include "pipeline/execute/gradient_reducer.h"
#include "pipeline/execute/stage_compute.h"
#include "pipeline/execute/stage_gradients.h"
#include "pipeline/execute/stage_votes.h"
#include "pipeline/schedule/action.h"
#include "pipeline/schedule/sum_group.h"
#include "plan/plan.h"
#include "plan/trace.h"

namespace motley {

struct ExecutorOptions {
  CompressorOptions gradients;  // of sums of gradients between machines; changes the result
  // Changes nothing but when it gives up: the longest wait for one message.
  Patience patience = 60;
  // Changes nothing but the time: encodes and decodes on threads of its own.
  bool codecs_beside = false;
};

// The rank that is executed: what it computes, keeps and votes.
struct StageParts {
  StageCompute& compute;
  StageGradients& gradients;
  StageVotes& votes;
};

// How long one run of the schedule took and where the time went, on this rank.
struct RunTimes {
  double total_s = 0;
  double compute_s = 0;    // all but waiting: of it
  double codec_s = 0;      // on what crosses between chunks: encoding, decoding, handing over
  double optimizer_s = 0;  // the step
  double wait_s = 0;       // for messages
};

class Executor {
 public:
  // Everything lent must outlive the executor. kConfig when the plan or the options name an unknown
  // codec.
  [[nodiscard]] static Result<std::unique_ptr<Executor>> make(Rank self,
                                                              const Plan& plan,
                                                              FrameLink& link,
                                                              const StageParts& stage,
                                                              Activity& activity,
                                                              ExecutorOptions options);

  // Runs this rank's actions of `schedule`, which must have passed validate_schedule.
  // kPeer when a message does not come in time or a peer is lost, kCorrupt for a bad one; the batch
  // is then abandoned, parameters unchanged unless the step was already voted.
  [[nodiscard]] Result<RunTimes> run(const Schedule& schedule, const BatchPosition& position);

  // Adds to the stage's gradients what compressed sums of this rank have left out so far: what
  // the sums of later steps still owe. False, and adds nothing, where sums are exact or there are
  // none. Between steps.
  [[nodiscard]] bool add_residuals();

  // From now on each action's span goes to the recorder, with time counted from the first call
  // (nullptr: stop).
  void record(TraceRecorder* recorder);

 private:
  enum class TiedUse { kFirstChunk, kLastChunk };

  Executor(Rank self,
           FrameLink& link,
           const StageParts& stage,
           Activity& activity,
           ExecutorOptions options);

  Result<void> begin_sums();
  Result<void> execute(const Action& action);
  Result<void> load(const Action& action);
  Result<void> send_targets(const Action& action);
  Result<void> forward(const Action& action);
  Result<void> backward(const Action& action);
  void backward_weight(const Action& action);
  void note_last(const Action& action);
  [[nodiscard]] bool is_last_change(const Action& action) const;
  [[nodiscard]] StageCompute::OnFinal on_final(ChunkId chunk);
  void end_final(ChunkId chunk);
  void end_tied(const Action& action);
  Result<void> finish_sum(const Action& action, const SumId& id);
  Result<void> vote();
  void step();

  // What the F, B or BI just before `send` made. REQUIRES: not sent yet.
  [[nodiscard]] OwnedFloats take_produced(const Action& send);

  void post(const Action& action,
            Rank from,
            const FrameId& id,
            std::size_t bytes_max,
            FrameReceiver::Read read);
  void post_targets(const Action& action);
  // room: gives the place of the values, which need not exist before they come.
  void post_floats(const Action& action,
                   Rank from,
                   const FrameId& id,
                   const Codec& codec,
                   std::size_t count,
                   std::function<std::span<float>()> room);
  // Waits for what the action posted.
  Result<void> receive(const Action& posted);
  Result<void> send_floats(Rank to, const FrameId& id, const Codec& codec, OwnedFloats floats);
  Result<void> send(FrameSender::Frame frame);

  [[nodiscard]] ChunkId last_chunk() const;
  void add_span(const char* lane, const Action& action, double start_s, double end_s);

  const Rank self_;
  FrameLink& link_;
  StageCompute& compute_;
  StageGradients& gradients_;
  StageVotes& votes_;
  Activity& activity_;
  const ExecutorOptions options_;
  std::vector<std::unique_ptr<const Codec>> codecs_;  // [ChunkId], of the boundary after it
  std::vector<SumGroup> holders_;                     // [ChunkId]
  SumGroup end_holders_;                              // of the first chunk or the last

  std::unique_ptr<GradientReducer> reducer_;  // made for the first step that sums

  const Schedule* schedule_ = nullptr;  // of the run under way
  BatchPosition position_;
  // The last action on this rank that changes each chunk's gradients, while it is still to come.
  std::map<ChunkId, Action> last_changes_;
  // The same of the tied parameter's gradient, by its use.
  std::map<TiedUse, Action> last_uses_;
  RunTimes times_;
  double action_wait_s_ = 0;  // of the action under way

  struct Produced {
    Action action;
    OwnedFloats floats;
  };

  Produced produced_;
  std::span<const std::int32_t> loaded_targets_;  // of the last load, until sent
  BufferPool buffers_;                            // of receives
  FrameSender sender_;
  FrameReceiver receiver_;

  TraceRecorder* recorder_ = nullptr;
  double record_start_s_ = 0;
};

}  // namespace motley

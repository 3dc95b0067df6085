// Executor: runs one rank's list of actions. One switch over the kinds, no policy: what is posted
// when, and in which order things are computed, is decided by the schedule alone, and what that
// means for each action by its rules (pipeline/schedule/action_rules.h).
//
// Sends and receives are posted here and carried out by the transport's thread, sums over replicas
// by a thread of their own from the last backward of a chunk on, and where computing leaves the
// processor free messages are encoded and decoded on two more, while the compute thread goes on;
// the only waits are for an input that has not arrived yet, each with a deadline. Used by the
// compute thread alone.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "compression/codec/codec.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/execute/action_times.h"
#include "pipeline/execute/activity.h"
#include "pipeline/execute/gradient_sync.h"
#include "pipeline/execute/stage_clock.h"
#include "pipeline/execute/stage_compute.h"
#include "pipeline/execute/stage_gradients.h"
#include "pipeline/execute/stage_votes.h"
#include "pipeline/execute/value_exchange.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"
#include "plan/trace.h"
#include "plan/wait_times.h"

namespace motley {

struct ExecutorOptions {
  CompressorOptions gradients;  // of sums of gradients between machines; changes the result
  // Changes the result: the largest norm of what this rank gives to those sums; 0 = any.
  double local_clip = 0;
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
  // Of the device that computes; nullptr where the compute thread does.
  StageClock* clock = nullptr;
};

// How long one run of the schedule took and where the time went, on this rank. A device that has
// not ended the run with the host (the step goes on beside the next batch) tells the rest of its
// times with the next run.
struct RunTimes {
  double total_s = 0;      // of the host
  double compute_s = 0;    // all but waiting: of it
  double codec_s = 0;      // on what crosses between chunks: encoding, decoding, handing over
  double optimizer_s = 0;  // the step
  WaitTimes wait_s;        // for messages, with nothing to compute
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

  // Adds to the stage's gradients what this rank kept of its compressed sums so far. The residuals
  // are what the sums of later steps still owe. False, and adds nothing, where nothing of the kind
  // is kept or there are no sums. Between steps.
  [[nodiscard]] bool add_kept(Kept what);
  // Before the first step: goes on from what stands in the stage's gradients of the schedule's sums
  // (GradientReducer::set_kept). They are to be cleared then.
  [[nodiscard]] Result<void> set_kept(Kept what, KeptBy whose, const Schedule& schedule);

  // After a run that a device did not come to the end of: what of it the device has yet to do
  // first.
  [[nodiscard]] std::optional<ActionTimes::UnderWay> under_way() { return times_.under_way(); }

  // From now on each action's span goes to the recorder, with time counted from the first call
  // (nullptr: stop, once a device has done what was recorded).
  void record(TraceRecorder* recorder) { times_.record(recorder); }

 private:
  Executor(Rank self,
           FrameLink& link,
           const StageParts& stage,
           Activity& activity,
           ExecutorOptions options,
           std::vector<std::unique_ptr<const Codec>> codecs,
           std::unique_ptr<GradientSync> sums);

  Result<void> run_all(const std::vector<Action>& actions);
  // `at`: its place in this rank's list.
  Result<void> execute(const Action& action, std::size_t at);
  // Waits for what the action needs of other ranks.
  Result<void> receive(const Action& action);
  Result<void> forward(const Action& action);
  Result<void> backward(const Action& action, std::size_t at);
  Result<void> finish_sum(const Action& action);
  Result<void> vote(const Action& action);
  void step();

  const Rank self_;
  FrameLink& link_;
  StageCompute& compute_;
  StageVotes& votes_;
  Activity& activity_;
  const ExecutorOptions options_;
  ValueExchange exchange_;
  std::unique_ptr<GradientSync> sums_;

  BatchPosition position_;  // of the run under way
  int rank_count_ = 0;

  HostClock host_clock_;  // of a stage without a clock of its own
  ActionTimes times_;
};

}  // namespace motley

// Executor: runs one rank's list of actions. One switch over the kinds, without policy: the
// schedule alone decides the order of computing and of posting. What an action sends and receives
// follows from its rules (pipeline/schedule/action_rules.h).
//
// Sends and receives are posted here and carried out by the transport's thread. All-reduces run on
// a thread of their own from a chunk's last backward on. If computing leaves the processor free,
// two more threads encode and decode messages. The compute thread waits only for an input that has
// not arrived yet, each time with a deadline. Used by the compute thread alone.
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
#include "pipeline/execute/round_sync.h"
#include "pipeline/execute/stage_clock.h"
#include "pipeline/execute/stage_compute.h"
#include "pipeline/execute/stage_gradients.h"
#include "pipeline/execute/stage_rounds.h"
#include "pipeline/execute/stage_votes.h"
#include "pipeline/execute/value_exchange.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"
#include "plan/step_times.h"
#include "plan/trace.h"

namespace motley {

struct ExecutorOptions {
  CompressorOptions gradients;  // of all-reduces between machines; changes the result
  // Changes the result: the largest norm of this rank's contribution to these all-reduces; 0 =
  // unlimited.
  double local_clip = 0;
  // Stall timeout of a wait for one message. Does not change the result.
  StallTimeout stall_timeout = 60;
  // Encode and decode on threads of their own. Changes only the speed.
  bool overlaps_codecs = false;
  // Limit of the cores that `threads` compute threads use together, if the stage has no clock of
  // its own; 0 = none (ComputeThrottle). Changes only the speed.
  double cpu_share = 0;
  int threads = 1;
};

// The rank that is executed: its computing, its gradients and its votes.
struct StageParts {
  StageCompute& compute;
  StageGradients& gradients;
  StageVotes& votes;
  // The clock of the device; nullptr if the compute thread itself computes.
  StageClock* clock = nullptr;
  // Required if the plan has rounds.
  StageRounds* rounds = nullptr;
};

class Executor {
 public:
  // All references must outlive the executor. kConfig if the plan or the options name an unknown
  // codec.
  [[nodiscard]] static Result<std::unique_ptr<Executor>> make(Rank self,
                                                              const Plan& plan,
                                                              FrameLink& link,
                                                              const StageParts& stage,
                                                              Activity& activity,
                                                              ExecutorOptions options);

  // Runs this rank's actions of `schedule`, which must have passed validate_schedule. kPeer if a
  // message is late or a peer is lost, kCorrupt if a message is malformed; the batch is then
  // abandoned, with parameters unchanged unless the step was already voted. If a device has not
  // finished the run when the host has (the step overlaps the next batch), the rest of its times is
  // part of the next run.
  [[nodiscard]] Result<StepTimes> run(const Schedule& schedule, const BatchPosition& position);

  // Adds the error-feedback state of this rank's compressed all-reduces to the stage's gradients.
  // Residuals are the part of the gradients that later steps still have to send. Returns false, and
  // adds nothing, if there is no such state or no all-reduce. Called between steps.
  [[nodiscard]] bool add_feedback(FeedbackKind what);
  // Before the first step: sets that state from the stage's gradients, for the schedule's
  // all-reduces (GradientReducer::set_feedback). The caller clears the gradients afterwards.
  [[nodiscard]] Result<void> set_feedback(FeedbackKind what,
                                          FeedbackScope scope,
                                          const Schedule& schedule);

  // The same for the pseudo-gradients' all-reduces of a plan with rounds, whose state is added to
  // and set from the stage's pseudo-gradients. REQUIRES: the plan has rounds.
  void add_round_feedback();
  [[nodiscard]] Result<void> set_round_feedback(FeedbackScope scope);

  // After a run that a device did not finish: the first action that it has not finished.
  [[nodiscard]] std::optional<ActionTimes::UnderWay> under_way() { return times_.under_way(); }

  // From now on each action's span goes to the recorder, with time counted from the first call
  // (nullptr: stop, once a device has finished the recorded work).
  void record(TraceRecorder* recorder) { times_.record(recorder); }

 private:
  Executor(Rank self,
           FrameLink& link,
           const StageParts& stage,
           Activity& activity,
           ExecutorOptions options,
           std::vector<std::unique_ptr<const Codec>> codecs,
           std::unique_ptr<GradientSync> sync);

  // The all-reduces of the schedule's gradients.
  [[nodiscard]] GradientSync& sync_of(const Schedule& schedule) {
    return schedule.islands.empty() ? *gradient_sync_ : *island_sync_;
  }

  Result<void> run_all(const std::vector<Action>& actions);
  // `at`: its position in this rank's list.
  Result<void> execute(const Action& action, std::size_t at);
  // Waits for the action's inputs from other ranks.
  Result<void> receive(const Action& action);
  Result<void> forward(const Action& action);
  Result<void> backward(const Action& action, std::size_t at);
  Result<void> finish_allreduce(const Action& action);
  Result<void> vote(const Action& action);
  Result<void> adopt(const Action& action);
  void step();

  const Rank self_;
  FrameLink& link_;
  StageCompute& compute_;
  StageVotes& votes_;
  Activity& activity_;
  const ExecutorOptions options_;
  ValueExchange exchange_;
  std::unique_ptr<GradientSync> gradient_sync_;
  // Of a plan with rounds; else nullptr.
  std::unique_ptr<GradientSync> island_sync_;
  std::unique_ptr<RoundSync> round_sync_;
  GradientSync* sync_ = nullptr;  // of the current run

  BatchPosition position_;  // of the current run
  int rank_count_ = 0;

  HostClock host_clock_;  // for a stage without a clock of its own
  ActionTimes times_;
};

}  // namespace motley

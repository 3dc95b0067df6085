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
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "compression/codec/codec.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/execute/activity.h"
#include "pipeline/execute/gradient_sums.h"
#include "pipeline/execute/stage_compute.h"
#include "pipeline/execute/stage_gradients.h"
#include "pipeline/execute/stage_votes.h"
#include "pipeline/execute/value_exchange.h"
#include "pipeline/schedule/action.h"
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
  Executor(Rank self,
           FrameLink& link,
           const StageParts& stage,
           Activity& activity,
           ExecutorOptions options,
           std::vector<std::unique_ptr<const Codec>> codecs,
           std::unique_ptr<GradientSums> sums);

  // `at`: its place in this rank's list.
  Result<void> execute(const Action& action, std::size_t at);
  Result<void> forward(const Action& action);
  Result<void> backward(const Action& action, std::size_t at);
  Result<void> finish_sum(const Action& action);
  Result<void> vote();
  void step();

  // How long the compute thread has waited for others in this run.
  [[nodiscard]] double wait_s() const { return exchange_.times().wait_s + sum_and_vote_wait_s_; }

  void add_span(const char* lane, const Action& action, double start_s, double end_s);

  const Rank self_;
  FrameLink& link_;
  StageCompute& compute_;
  StageVotes& votes_;
  Activity& activity_;
  const ExecutorOptions options_;
  ValueExchange exchange_;
  std::unique_ptr<GradientSums> sums_;

  BatchPosition position_;  // of the run under way
  int rank_count_ = 0;
  RunTimes times_;
  double sum_and_vote_wait_s_ = 0;

  TraceRecorder* recorder_ = nullptr;
  double record_start_s_ = 0;
};

}  // namespace motley

// RankRun: one rank of a run, from joining the others to leaving them, whatever it holds. Used by
// the compute thread alone.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "base/work_counter.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/transport.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/activity.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/action.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"
#include "training/pushes/pushed_sums.h"
#include "training/vote/step_voter.h"
#include "worker/train/training_loop.h"

namespace motley {

// What all ranks agree on before anything is computed, both validated.
struct Schedules {
  Schedule training;
  Schedule evaluation;
};

[[nodiscard]] Result<Schedules> make_schedules(const Plan& plan, bool tied);

class RankRun {
 public:
  // All that is lent must outlive it.
  RankRun(const Job& job,
          const ModelSpec& model,
          LauncherChannel& launcher,
          Activity& activity,
          const Schedules& schedules)
      : job_(job), model_(model), launcher_(launcher), activity_(activity), schedules_(schedules) {}

  // Connects to all other ranks and says that this one is ready.
  [[nodiscard]] Result<void> join(const StageParts& stage, const PushedSums& pushed);

  // Ends what computes and sends beside the compute thread, before what it was lent goes.
  void leave() { executor_.reset(); }

  // Once joined.
  [[nodiscard]] Executor& executor() { return *executor_; }

  [[nodiscard]] FrameLink& link() { return *link_; }

  [[nodiscard]] WorkCounter& work() { return activity_.work(); }

  // A wait may last as long as the other stages compute, or save; a step that takes four times its
  // prediction while no stage gets on has gone wrong.
  [[nodiscard]] Patience patience() const;

  // Trains to the end of the session. REQUIRES: joined.
  [[nodiscard]] Result<void> train(const StepVoter& voter, Evaluator& evaluator, ShardSaver& saver);

 private:
  const Job& job_;
  const ModelSpec& model_;
  LauncherChannel& launcher_;
  Activity& activity_;
  const Schedules& schedules_;
  std::unique_ptr<Transport> transport_;
  std::optional<FrameLink> link_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace motley

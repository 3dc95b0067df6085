// RankRun: the participation of one rank in a run, from joining to leaving, on any device. Used by
// the compute thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/progress_counter.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/transport.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/activity.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/action.h"
#include "protocol/launcher_channel.h"
#include "protocol/protocol.h"
#include "training/momentum_correction/corrected_allreduces.h"
#include "training/vote/step_voter.h"
#include "worker/train/training_loop.h"

namespace motley {

// The schedules that all ranks share, validated.
struct Schedules {
  std::map<StepScope, Schedule> training;  // of the scopes that the plan has
  Schedule evaluation;
  Schedule start_evaluation;  // while one island computes alone (plan/rounds/rounds_plan.h)
};

[[nodiscard]] Result<Schedules> make_schedules(const Plan& plan, bool tied);

class RankRun {
 public:
  // References must outlive it.
  RankRun(const Job& job,
          const ModelSpec& model,
          LauncherChannel& launcher,
          Activity& activity,
          const Schedules& schedules)
      : job_(job), model_(model), launcher_(launcher), activity_(activity), schedules_(schedules) {}

  // Connects to all other ranks and reports that this one is ready.
  [[nodiscard]] Result<void> join(const StageParts& stage, const CorrectedAllreduces& corrected);

  // Ends the threads beside the compute thread, before objects lent to them are destroyed.
  void leave() { executor_.reset(); }

  // REQUIRES: joined.
  [[nodiscard]] Executor& executor() { return *executor_; }

  [[nodiscard]] FrameLink& link() { return *link_; }

  [[nodiscard]] ProgressCounter& work() { return activity_.work(); }

  // The stall timeout: a wait may last while other stages compute or save; a step that takes four
  // times its prediction without progress of any stage has failed.
  [[nodiscard]] StallTimeout stall_timeout() const;

  // Trains to the end of the session. REQUIRES: joined.
  [[nodiscard]] Result<void> train(StepVoter& voter, Evaluator& evaluator, ShardSaver& saver);

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

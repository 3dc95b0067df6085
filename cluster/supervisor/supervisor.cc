#include "cluster/supervisor/supervisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "cluster/launch/workers.h"
#include "cluster/prepare/prepare_run.h"
#include "cluster/run/resume_hint.h"
#include "cluster/run_record/event_log.h"
#include "cluster/supervisor/decide.h"
#include "cluster/supervisor/hand_over.h"
#include "cluster/supervisor/later_requests.h"
#include "cluster/supervisor/learning.h"
#include "cluster/supervisor/loss_text.h"
#include "cluster/supervisor/members.h"
#include "cluster/supervisor/restart_policy.h"
#include "cluster/supervisor/return_watch.h"

namespace motley {
namespace {

std::int64_t newest_step(const RunFolder& folder) {
  const auto checkpoints = list_checkpoints(folder.dir());
  return checkpoints.empty() ? 0 : checkpoints.back().step;
}

std::string parts_text(const Plan& plan) {
  if (plan.rounds) return fmt::format("{} islands", plan.rounds->islands.size());
  return plan.chunk_count() == 1 ? "one stage" : fmt::format("{} stages", plan.rank_count());
}

// `returns` may be null.
StepDirective directive_of(Adaptation& adaptation,
                           ReturnWatch* returns,
                           Rank rank,
                           const StepReport& report) {
  if (returns != nullptr) {
    if (auto line = returns->on_step(report.step)) return {*std::move(line), true};
  }
  auto line = adaptation.on_step(rank, report);
  return {line ? *std::move(line) : "", adaptation.plan_switch().has_value()};
}

class Supervisor {
 public:
  Supervisor(Launch launch, const TrainingRequest& first, Log& log, std::FILE* progress_out)
      : run_(std::move(launch.run)),
        lock_(std::move(launch.lock)),
        requests_(first, run_.planned),
        log_(log),
        progress_out_(progress_out),
        policy_(first.planning.cluster,
                first.machines.stage_program,
                {.restarts = capabilities_of(run_.planned.plan).keeps_state
                                 ? run_.planned.config.run.restarts
                                 : 0,
                 .longest_outage_s = run_.planned.config.run.patience_s}) {}

  Result<RunResult> train() {
    TrainingRequest request = requests_.first();
    for (;;) {
      MOTLEY_ASSIGN(const std::unique_ptr<Adaptation> adaptation,
                    adaptation_of(run_, request, log_));
      MOTLEY_ASSIGN(auto returns, requests_.watch_absent(run_, start_s_, log_));
      TrainingEnd end = run_training(
          run_, *lock_, request, log_, progress_out_, [&](Rank rank, const StepReport& report) {
            if (begun_at_s_) start_s_ = now_s() - *std::exchange(begun_at_s_, std::nullopt);
            return directive_of(*adaptation, returns.get(), rank, report);
          });
      const auto returning = returns ? returns->returning() : std::vector<std::string>();
      returns.reset();
      const bool has_steps_left =
          end.summary.last_step < run_.steps.last && end.summary.stopped_early.empty();
      if (newest_step(run_.folder) >= run_.steps.first) {
        policy_.note_saved(machines_in_use(run_.planned.plan));
      }
      if (!end.failure && has_steps_left && !end.leaving.empty()) {
        MOTLEY_TRY(continue_without(end.leaving, end.summary.last_step, request));
        continue;
      }
      if (!end.failure && has_steps_left && !returning.empty()) {
        MOTLEY_TRY(take_in(returning, end.summary.last_step, request));
        continue;
      }
      if (!end.failure && has_steps_left && adaptation->plan_switch()) {
        MOTLEY_TRY(move(*adaptation->plan_switch(), end.summary.last_step, request));
        continue;
      }
      if (!end.failure)
        return RunResult{run_, std::move(end.summary), restarts_, requests_.switches()};
      Error error = std::move(end.failure->error);
      // A folder that another launcher has taken over is not touched.
      if (!lock_->confirm().ok()) return error;
      const bool has_trained = end.summary.last_step > 0;
      if (has_trained) {
        last_step_ = end.summary.last_step;
        failed_at_s_ = end.progress_at_s;
        policy_.note_progress();
      }
      exclude_leaving(end.leaving);
      note_failed_attempt({.code = error.code,
                           .has_trained = has_trained,
                           .has_saved = newest_step(run_.folder) >= run_.steps.first,
                           .fault = std::move(end.failure->fault)});
      MOTLEY_TRY(restart(std::move(error), request));
    }
  }

  // Records the end of the run, unless another launcher has taken over its folder.
  void log_end(const Result<RunResult>& end) {
    if (lock_ == nullptr || !lock_->confirm().ok()) return;
    const std::int64_t step = end.ok() ? end->summary.last_step : 0;
    const std::string text =
        end.ok() ? done_text(end->summary, capabilities_of(run_.planned.plan).computes)
                 : fmt::format("ended early: {}: {}", end.error().what, end.error().cause);
    emit(RunEventKind::kEnded, step, text);
  }

 private:
  // Restarts with a better plan that the launch before, which ended with this step, has found.
  Result<void> move(const BetterPlan& better, std::int64_t step, TrainingRequest& request) {
    requests_.note_move(better);
    failed_at_s_.reset();
    request = next_request(requests_.absences.left_out());
    request.planning.plan = better.plan;
    MOTLEY_ASSIGN(const bool has_moved, begin_after(step, request));
    return has_moved ? run_.folder.write_profile(requests_.measured()) : Result<void>();
  }

  // Restarts with machines that answer again, after the launch before has saved this step.
  Result<void> take_in(const std::vector<std::string>& returning,
                       std::int64_t step,
                       TrainingRequest& request) {
    const std::vector<std::string> without = requests_.left_out_except(returning);
    failed_at_s_.reset();
    request = next_request(without);
    MOTLEY_ASSIGN(const bool has_moved, begin_after(step, request));
    if (has_moved) requests_.absences.set(without, now_s(), policy_);
    return {};
  }

  // Begins the next launch after one that ended with a saved step. False: it could not be prepared,
  // and another one begins instead.
  Result<bool> begin_after(std::int64_t step, TrainingRequest& request) {
    last_step_ = step;
    Result<void> begun = begin(request);
    if (begun.ok()) return true;
    Error error = with_resume_hint(std::move(begun).error());
    note_failed_attempt(
        {.code = error.code, .has_trained = true, .has_saved = true, .fault = begin_fault_});
    MOTLEY_TRY(restart(std::move(error), request));
    return false;
  }

  // After a launch that ended with this saved step because machines leave.
  Result<void> continue_without(const std::set<std::string>& leaving,
                                std::int64_t step,
                                TrainingRequest& request) {
    last_step_ = step;
    failed_at_s_ = now_s();
    policy_.note_progress();
    const std::string names = fmt::format("{}", fmt::join(leaving, ", "));
    if (machines_in_use(run_.planned.plan) == leaving) {
      return with_resume_hint({ErrorCode::kTerminated,
                               fmt::format("every machine leaves, after step {} was saved", step),
                               fmt::format("the workers on {} received SIGTERM", names), ""});
    }
    lock_.reset();  // the launch has ended; machines answer a later one about its files
    MOTLEY_TRY(relock_folder());
    const TrainingRequest& first = requests_.first();
    const Result<void> handed_over = hand_over(leaving, run_, first.planning.cluster,
                                               first.machines.stage_program, *lock_, log_);
    if (!handed_over.ok()) {
      log_.warn(fmt::format("the parts of the checkpoint on {} were not copied: {}: {}", names,
                            handed_over.error().what, handed_over.error().cause));
    }
    exclude_leaving(leaving);
    Error error = with_resume_hint({ErrorCode::kPeer,
                                    fmt::format("{} left, after step {} was saved", names, step),
                                    "its worker received SIGTERM", ""});
    note_failed_attempt({.code = error.code,
                         .has_trained = true,
                         .has_saved = true,
                         .fault = {.machines = {leaving.begin(), leaving.end()}},
                         .is_by_request = true});
    return restart(std::move(error), request);
  }

  // A machine that leaves usually answers on: its owner wants it back. One that had joined by
  // ticket is gone once its motley join ends; when it joins again it is meant to be used.
  void exclude_leaving(const std::set<std::string>& leaving) {
    constexpr double kUntilGone_s = 10;
    for (const std::string& machine : leaving) {
      if (has_joined(requests_.first().planning.cluster, machine)) {
        policy_.exclude_for(machine, kUntilGone_s);
      } else {
        policy_.exclude(machine);
      }
    }
  }

  // Decides, waits and prepares launches until one is ready. The error ends the run.
  Result<void> restart(Error error, TrainingRequest& request) {
    OutageLog outage(log_);
    for (;;) {
      Result<Decision> decided = policy_.decide_next();
      if (!decided.ok()) return with_resume_hint(std::move(decided).error());
      const Decision& decision = *decided;
      if (decision.next_action == NextAction::kEnd) return end_error(std::move(error), decision);
      if (decision.next_action == NextAction::kQueryAgain) {
        if (decision.is_outage) policy_.note_outage();
        if (outage.begins()) log_loss(error, decision);
        outage.report_silent(decision.silent);
      } else {
        if (outage.ends(decision.silent)) {
          log_.info("enough machines answer again");
        } else {
          log_loss(error, decision);
        }
        policy_.exclude(decision.excluded);
      }
      Result<void> waited = wait_or_stop(decision.wait_s);
      if (!waited.ok()) return with_resume_hint(std::move(waited).error());
      if (decision.next_action == NextAction::kQueryAgain) continue;
      request = next_request(decision.without);
      Result<void> begun = begin(request);
      if (begun.ok()) {
        ++restarts_;
        requests_.absences.set(decision.without, now_s(), policy_);
        return {};
      }
      MOTLEY_TRY(handle_failed_begin(std::move(begun).error(), decision, error));
    }
  }

  // After a launch that could not be prepared. Sets `error` to that with which the run would end.
  Result<void> handle_failed_begin(Error failed, const Decision& decision, Error& error) {
    if (is_stop(failed)) return with_resume_hint(std::move(failed));
    // A failure of machines that had answered would repeat itself, whatever the silent ones do.
    const bool is_of_answering = failed.code == ErrorCode::kPeer && !begin_fault_.machines.empty();
    const bool has_excluded = decision.without.size() > decision.silent.size();
    if (!is_of_answering && !decision.silent.empty()) {
      MOTLEY_TRY(relock_folder());
      policy_.note_outage(decision.silent);
      const Cluster& cluster = requests_.first().planning.cluster;
      const bool have_joined = std::ranges::all_of(
          decision.silent,
          [&](const std::string& machine) { return has_joined(cluster, machine); });
      error = with_resume_hint(absent_machines_error(failed, decision.silent, have_joined));
      return {};
    }
    if (!is_of_answering && has_excluded) {
      // The run needs the excluded machines, although they failed.
      policy_.require(decision.without);
      return {};
    }
    note_failed_attempt({.code = failed.code, .fault = begin_fault_});
    error = with_resume_hint(std::move(failed));
    return {};
  }

  // Keeps other launchers out of the folder while this run waits for machines.
  Result<void> relock_folder() {
    if (lock_ != nullptr) return {};
    MOTLEY_ASSIGN(RunLock lock, RunLock::acquire(run_.folder.dir(), log_));
    lock_ = std::make_unique<RunLock>(std::move(lock));
    return {};
  }

  void log_loss(const Error& error, const Decision& decision) {
    const std::string text = loss_text(error, decision, policy_.last_attempt(), policy_.rules(),
                                       newest_step(run_.folder));
    const bool waits = decision.next_action == NextAction::kQueryAgain;
    const std::vector<std::string>& away = waits ? decision.silent : decision.without;
    emit(RunEventKind::kLost, last_step_, text, away.size() == 1 ? away.front() : "");
  }

  void emit(RunEventKind kind,
            std::int64_t step,
            const std::string& text,
            const std::string& machine = "") const {
    EventLog(run_.folder.events_path(), log_).emit(kind, step, text, machine);
  }

  void note_failed_attempt(FailedAttempt attempt) {
    attempt.at_s = now_s();
    attempt.is_of_new_run = last_step_ == 0 && newest_step(run_.folder) == 0;
    if (!failed_at_s_) failed_at_s_ = attempt.at_s;
    policy_.add(std::move(attempt));
  }

  [[nodiscard]] TrainingRequest next_request(const std::vector<std::string>& without) {
    TrainingRequest next = requests_.without(without, run_.planned.plan, failed_at_s_);
    next.machines.on_fault = [this](const PeerFault& fault) { begin_fault_ = fault; };
    return next;
  }

  [[nodiscard]] Error with_resume_hint(Error error) const {
    return motley::with_resume_hint(std::move(error), run_.folder.dir(), run_.steps.first,
                                    requests_.first().commands);
  }

  [[nodiscard]] Error end_error(Error error, const Decision& decision) const {
    if (!decision.reason.empty()) {
      error.cause += error.cause.empty() ? decision.reason : "; " + decision.reason;
    }
    const std::string& problems = policy_.problems();
    if (!decision.silent.empty() && !problems.empty()) error.cause += "; " + problems;
    return error;
  }

  // Prepares the next launch, which replaces the last one.
  Result<void> begin(const TrainingRequest& request) {
    lock_.reset();  // the next launch locks the folder itself
    begin_fault_ = {};
    begun_at_s_ = now_s();
    MOTLEY_ASSIGN(Launch next, prepare_run(request, log_));
    const Plan& plan = next.run.planned.plan;
    if (plan_hash_text(plan) != plan_hash_text(run_.planned.plan)) {
      emit(RunEventKind::kReplanned, next.run.steps.first - 1,
           fmt::format("a new plan: {} on {}, {:.3f} s a step predicted", parts_text(plan),
                       fmt::join(machines_in_use(plan), ", "), plan.predicted_step_s));
    }
    run_ = std::move(next.run);
    lock_ = std::move(next.lock);
    log_.info(restart_text(run_.steps.first - 1, last_step_));
    return {};
  }

  ReadyRun run_;                   // of the last launch
  std::unique_ptr<RunLock> lock_;  // null after a launch that could not be prepared
  LaterRequests requests_;
  Log& log_;
  std::FILE* const progress_out_;
  RestartPolicy policy_;
  PeerFault begin_fault_;              // of the last launch that was prepared
  std::optional<double> failed_at_s_;  // since when no launch has made progress
  std::int64_t last_step_ = 0;         // the last one trained by any launch
  int restarts_ = 0;
  // When the last launch began, until its first step.
  std::optional<double> begun_at_s_ = now_s();
  double start_s_ = 0;  // how long the last launch that trained took until then
};

}  // namespace

Result<RunResult> run_with_restarts(Launch launch,
                                    const TrainingRequest& request,
                                    Log& log,
                                    std::FILE* progress_out) {
  Supervisor supervisor(std::move(launch), request, log, progress_out);
  Result<RunResult> end = supervisor.train();
  supervisor.log_end(end);
  return end;
}

}  // namespace motley

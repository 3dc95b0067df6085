#include "cluster/recover/supervisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "cluster/follow/event_log.h"
#include "cluster/launch/workers.h"
#include "cluster/process/stop_signals.h"
#include "cluster/recover/decide.h"
#include "cluster/recover/learning.h"
#include "cluster/recover/loss_text.h"
#include "cluster/recover/members.h"
#include "cluster/run/resume_hint.h"

namespace motley {
namespace {

// Returns early with a signal.
Result<void> wait(double seconds) {
  StopSignals signals;
  const double until_s = now_s() + seconds;
  for (double left_s = seconds; left_s > 0; left_s = until_s - now_s()) {
    pollfd poll_fd{signals.fd(), POLLIN, 0};
    ::poll(&poll_fd, 1, static_cast<int>(std::ceil(left_s * 1000)));
    if (auto stop = signals.take()) return *std::move(stop);
  }
  return {};
}

template <class List>
bool holds(const List& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

bool uses_any(const Plan& plan, const std::vector<std::string>& machines) {
  return std::ranges::any_of(plan.ranks,
                             [&](const RankPlan& rank) { return holds(machines, rank.machine); });
}

std::int64_t newest_step(const PreparedRun& run) {
  const auto checkpoints = list_checkpoints(run.folder.dir());
  return checkpoints.empty() ? 0 : checkpoints.back().step;
}

StepDirective wish_of(Adaptation& adaptation, Rank rank, const StepReport& report) {
  auto line = adaptation.on_step(rank, report);
  return {line ? *std::move(line) : "", adaptation.move().has_value()};
}

// A machine that failed by itself is tried again after so long, at the next loss.
constexpr double kExcluded_s = 1800;

class Supervisor {
 public:
  Supervisor(PreparedRun& run, const TrainingRequest& first, Log& log, std::FILE* progress_out)
      : run_(run),
        first_(first),
        log_(log),
        progress_out_(progress_out),
        measured_(run.profile),
        first_plan_(run.plan) {
    rules_.restarts = is_virtual(run.plan) ? 0 : run.config.run.restarts;
  }

  Result<RunResult> train() {
    TrainingRequest request = first_;
    for (;;) {
      MOTLEY_ASSIGN(const std::unique_ptr<Adaptation> adaptation,
                    adaptation_of(run_, request, log_));
      TrainingEnd end = run_training(
          run_, request, log_, progress_out_,
          [&](Rank rank, const StepReport& report) { return wish_of(*adaptation, rank, report); });
      const bool has_steps_left = end.summary.last_step < last_step_of(run_, request);
      if (!end.early && has_steps_left && adaptation->move()) {
        MOTLEY_TRY(move(*adaptation->move(), end.summary.last_step, request));
        continue;
      }
      if (!end.early) return RunResult{std::move(end.summary), restarts_, moves_};
      Error error = *std::move(end.early);
      // Another launcher's folder is left alone.
      if (!run_.lock->confirm().ok()) return error;
      const bool has_trained = end.summary.last_step > 0;
      if (has_trained) {
        last_step_ = end.summary.last_step;
        failed_at_s_ = end.got_on_at_s;
        needed_.clear();
      }
      note_setback({.code = error.code,
                    .has_trained = has_trained,
                    .has_saved = newest_step(run_) >= run_.first_step,
                    .fault = end.fault});
      MOTLEY_TRY(start_again(std::move(error), request));
    }
  }

 private:
  // To a plan that the launch before, which ended with this step, has learned of.
  Result<void> move(const BetterPlan& better, std::int64_t step, TrainingRequest& request) {
    last_step_ = step;
    failed_at_s_.reset();
    ++moves_;
    // Where a machine is away, the plan of the start waits for it.
    if (left_out_.empty()) first_plan_ = better.plan;
    measured_ = better.profile;
    request = next_request(left_out_);
    request.plan = better.plan;
    Result<void> begun = begin(request);
    if (!begun.ok()) {
      Error error = with_resume_hint(std::move(begun).error());
      note_setback(
          {.code = error.code, .has_trained = true, .has_saved = true, .fault = begin_fault_});
      return start_again(std::move(error), request);
    }
    run_.profile = measured_;
    return run_.folder.write_profile(measured_);
  }

  // Until a launch is ready, or the run ends.
  Result<void> start_again(Error error, TrainingRequest& request) {
    OutageTeller outage(log_);
    for (;;) {
      Result<Decision> decided = decide_next();
      if (!decided.ok()) return with_resume_hint(std::move(decided).error());
      const Decision& decision = *decided;
      if (decision.move == NextMove::kEnd) return end_error(std::move(error), decision);
      if (decision.move == NextMove::kAskAgain) {
        if (decision.is_outage) setbacks_.back().outage_at_s = now_s();
        if (outage.begins()) tell_loss(error, decision);
        outage.tell(decision.silent);
      } else {
        if (outage.ends(decision.silent)) {
          log_.info("enough machines answer again");
        } else {
          tell_loss(error, decision);
        }
        exclude(decision.excluded);
      }
      Result<void> waited = wait(decision.wait_s);
      if (!waited.ok()) return with_resume_hint(std::move(waited).error());
      if (decision.move == NextMove::kAskAgain) continue;
      request = next_request(decision.without);
      Result<void> begun = begin(request);
      if (begun.ok()) {
        ++restarts_;
        left_out_ = decision.without;
        return {};
      }
      MOTLEY_TRY(take_failed_begin(std::move(begun).error(), decision, error));
    }
  }

  // Why the next launch did not come about. `error` becomes what the run would end with.
  Result<void> take_failed_begin(Error failed, const Decision& decision, Error& error) {
    if (is_stop(failed)) return with_resume_hint(std::move(failed));
    // What it said of the machines that answered, it would say again.
    const bool is_of_those_left = failed.code == ErrorCode::kPeer && !begin_fault_.machines.empty();
    const bool has_excluded = decision.without.size() > decision.silent.size();
    if (!is_of_those_left && !decision.silent.empty()) {
      MOTLEY_TRY(take_folder_again());
      setbacks_.back().outage_at_s = now_s();
      setbacks_.back().lacking = decision.silent;
      error = with_resume_hint(lacking_error(failed, decision.silent));
      return {};
    }
    if (!is_of_those_left && has_excluded) {
      // They fail, and are the best there is.
      for (const std::string& machine : decision.without) needed_.insert(machine);
      excluded_.clear();
      return {};
    }
    note_setback({.code = failed.code, .fault = begin_fault_});
    error = with_resume_hint(std::move(failed));
    return {};
  }

  // No other launcher takes it while this run waits for machines.
  Result<void> take_folder_again() {
    if (run_.lock != nullptr) return {};
    MOTLEY_ASSIGN(RunLock lock, RunLock::take(run_.folder.dir(), log_));
    run_.lock = std::make_unique<RunLock>(std::move(lock));
    return {};
  }

  void exclude(const std::string& machine) {
    if (!machine.empty()) excluded_[machine] = now_s() + kExcluded_s;
  }

  void tell_loss(const Error& error, const Decision& decision) {
    const std::string text =
        loss_text(error, decision, setbacks_.back(), rules_, newest_step(run_));
    const bool waits = decision.move == NextMove::kAskAgain;
    const std::vector<std::string>& away = waits ? decision.silent : decision.without;
    tell(RunEventKind::kLost, last_step_, text, away.size() == 1 ? away.front() : "");
  }

  void tell(RunEventKind kind,
            std::int64_t step,
            const std::string& text,
            const std::string& machine = "") const {
    EventLog(run_.folder.events_path(), log_).tell(kind, step, text, machine);
  }

  void note_setback(FailedAttempt setback) {
    setback.at_s = now_s();
    setback.is_of_new_run = last_step_ == 0 && newest_step(run_) == 0;
    if (!failed_at_s_) failed_at_s_ = setback.at_s;
    setbacks_.push_back(std::move(setback));
  }

  Result<Decision> decide_next() {
    const std::set<std::string> machines = machine_names(first_.cluster);
    // Nobody is asked where that decides nothing.
    std::vector<Member> members = members_of(machines);
    mark(members);
    Decision decision = decide(setbacks_.back().at_s, members, setbacks_, rules_);
    if (decision.move == NextMove::kEnd && decision.reason.empty()) return decision;
    MOTLEY_ASSIGN(members, ask_members(first_.cluster, machines, first_.stage_program));
    mark(members);
    troubles_ = troubles_text(members);
    return decide(now_s(), members, setbacks_, rules_);
  }

  void mark(std::vector<Member>& members) {
    std::erase_if(excluded_, [](const auto& each) { return each.second < now_s(); });
    for (Member& member : members) {
      member.is_excluded = excluded_.contains(member.machine);
      member.is_needed = needed_.contains(member.machine);
    }
  }

  // The plan that can be carried out still, if there is one: that of the start wherever it can be,
  // and the last launch's only where nobody it was made without has come back.
  [[nodiscard]] std::optional<Plan> plan_to_keep(const std::vector<std::string>& without) const {
    if (!uses_any(first_plan_, without)) return first_plan_;
    const bool is_back = std::ranges::any_of(
        left_out_, [&](const std::string& machine) { return !holds(without, machine); });
    if (is_back || uses_any(run_.plan, without)) return {};
    return run_.plan;
  }

  [[nodiscard]] TrainingRequest next_request(const std::vector<std::string>& without) {
    TrainingRequest next = first_;
    if (next.known_profile.devices.empty() || moves_ > 0) next.known_profile = measured_;
    next = request_without(std::move(next), without);
    next.resume = true;
    next.measure_anew = false;
    next.have_answered = true;
    next.moves_done = moves_;
    // The plan of the start, when a machine is back, or that of a move: also where a launch by
    // another one has saved last.
    next.may_round_otherwise = true;
    next.failed_at_s = failed_at_s_;
    next.on_fault = [this](const PeerFault& fault) { begin_fault_ = fault; };
    next.plan = plan_to_keep(without);
    if (!next.plan) next.stages = 0;  // as many as are left
    return next;
  }

  [[nodiscard]] Error with_resume_hint(Error error) const {
    return motley::with_resume_hint(std::move(error), run_.folder.dir(), run_.first_step,
                                    first_.commands);
  }

  [[nodiscard]] Error end_error(Error error, const Decision& decision) const {
    if (!decision.reason.empty()) {
      error.cause += error.cause.empty() ? decision.reason : "; " + decision.reason;
    }
    if (!decision.silent.empty() && !troubles_.empty()) error.cause += "; " + troubles_;
    return error;
  }

  // Prepares the next launch in the place of the one before.
  Result<void> begin(const TrainingRequest& request) {
    run_.lock.reset();  // the next launch takes the folder for itself
    begin_fault_ = {};
    MOTLEY_ASSIGN(PreparedRun next, prepare_run(request, log_));
    if (plan_hash_text(next.plan) != plan_hash_text(run_.plan)) {
      tell(RunEventKind::kReplanned, next.first_step - 1,
           fmt::format("a new plan: {} on {}, {:.3f} s a step predicted",
                       next.plan.rank_count() == 1
                           ? std::string("one stage")
                           : fmt::format("{} stages", next.plan.rank_count()),
                       fmt::join(machines_in_use(next.plan), ", "), next.plan.predicted_step_s));
    }
    run_ = std::move(next);
    log_.info(going_on_text(run_.first_step - 1, last_step_));
    return {};
  }

  PreparedRun& run_;
  const TrainingRequest& first_;
  Log& log_;
  std::FILE* const progress_out_;
  Profile measured_;                   // or learned since, with a move
  Plan first_plan_;                    // of the start, or of the last move
  std::vector<std::string> left_out_;  // of the last launch
  RecoveryRules rules_;
  std::vector<FailedAttempt> setbacks_;
  // Machines that failed by themselves, and until when they are left out.
  std::map<std::string, double> excluded_;
  std::set<std::string> needed_;       // machines without which the run could not go on
  PeerFault begin_fault_;              // of the last attempt to get a launch ready
  std::string troubles_;               // of machines, when last asked
  std::optional<double> failed_at_s_;  // the first setback since a step was done
  std::int64_t last_step_ = 0;         // that was ever done
  int restarts_ = 0;
  int moves_ = 0;
};

}  // namespace

Result<RunResult> run_with_restarts(PreparedRun& run,
                                    const TrainingRequest& request,
                                    Log& log,
                                    std::FILE* progress_out) {
  Result<RunResult> end = Supervisor(run, request, log, progress_out).train();
  // Another launcher's folder is left alone.
  if (run.lock != nullptr && run.lock->confirm().ok()) {
    const std::int64_t step = end.ok() ? end->summary.last_step : 0;
    const std::string text =
        end.ok() ? done_text(end->summary, is_virtual(run.plan))
                 : fmt::format("ended early: {}: {}", end.error().what, end.error().cause);
    EventLog(run.folder.events_path(), log).tell(RunEventKind::kEnded, step, text);
  }
  return end;
}

}  // namespace motley

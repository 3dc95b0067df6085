// An interpreter of schedules that computes nothing. It knows the rules of each action and no
// generator. Sends never block. A compute action blocks until its input was sent. All-reduces and
// the vote block until all their ranks have arrived. Under these rules no action of one rank
// removes a precondition of another, so the order in which ranks are advanced here does not matter:
// if one order gets stuck, all do.
#include "pipeline/schedule/validate.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "pipeline/schedule/action_rules.h"
#include "pipeline/schedule/check_result.h"
#include "pipeline/schedule/collective_checks.h"
#include "pipeline/schedule/compute_order.h"
#include "pipeline/schedule/value_ledger.h"

namespace motley {
namespace {

Error bad(const Schedule& schedule, const std::string& why) {
  return {ErrorCode::kInternal, fmt::format("schedule '{}' is invalid: {}", schedule.name, why),
          to_text(schedule), ""};
}

Error bad_at(const Schedule& schedule, std::size_t rank, std::size_t at, const std::string& why) {
  return bad(schedule, fmt::format("rank {}, action {} ({}): {}", rank, at,
                                   to_text(schedule.ranks[rank][at]), why));
}

// Checks that all ids exist.
Result<void> check_numbers(const Schedule& schedule) {
  if (schedule.micro_batches < 1) return bad(schedule, "no micro-batches");
  if (schedule.owners.empty()) return bad(schedule, "no chunks");
  const auto micros = static_cast<std::size_t>(schedule.micro_batches);
  for (const auto& owners : schedule.owners) {
    if (owners.size() != micros) {
      return bad(schedule, "a chunk has not one owner for each micro-batch");
    }
    for (const Rank rank : owners) {
      if (rank.value >= 0 && rank.index() < schedule.ranks.size()) continue;
      return bad(schedule, fmt::format("a chunk on rank {}, which does not exist", rank.value));
    }
  }
  std::size_t count = 0;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::vector<Action>& actions = schedule.ranks[r];
    count += actions.size();
    for (std::size_t at = 0; at < actions.size(); ++at) {
      const auto& [kind, chunk, micro] = actions[at];
      if (has_chunk(kind) && (chunk.value < 0 || chunk.value >= schedule.chunk_count())) {
        return bad_at(schedule, r, at, "the chunk does not exist");
      }
      if (has_micro(kind) && (micro.value < 0 || micro.value >= schedule.micro_batches)) {
        return bad_at(schedule, r, at, "the micro-batch does not exist");
      }
    }
  }
  // Each micro-batch takes at least one action per chunk, so a header that promises more than the
  // lists hold is wrong; checked before memory is sized by it.
  if (count / schedule.owners.size() < micros) {
    return bad(schedule, "fewer actions than micro-batches need");
  }
  return {};
}

// REQUIRES: check_numbers() accepts the schedule.
class Interpreter {
 public:
  Interpreter(const Schedule& schedule, bool tied_across_ranks)
      : schedule_(schedule),
        rules_(schedule.owners),
        values_(rules_, schedule.ranks.size()),
        compute_order_(schedule, is_training(schedule)),
        collectives_(schedule, rules_, is_training(schedule), tied_across_ranks),
        next_(schedule.ranks.size(), 0) {}

  Result<ScheduleStats> run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (rank_ = 0; rank_ < schedule_.ranks.size(); ++rank_) {
        MOTLEY_ASSIGN(const bool advanced, advance());
        progress = progress || advanced;
      }
    }
    MOTLEY_TRY(check_end());
    return ScheduleStats{compute_order_.peak_in_flight(), compute_order_.peak_queued_weights(),
                         values_.peak_posted(), values_.peak_unsent()};
  }

 private:
  static bool is_training(const Schedule& schedule) { return schedule.name != "forward"; }

  // Runs the current rank until it must wait. Returns whether it ran at least one action.
  Result<bool> advance() {
    const std::vector<Action>& actions = schedule_.ranks[rank_];
    bool advanced = false;
    for (; next_[rank_] < actions.size(); ++next_[rank_], advanced = true) {
      const CheckResult check_result = run_action(actions[next_[rank_]]);
      if (!check_result.wrong.empty()) {
        return bad_at(schedule_, rank_, next_[rank_], check_result.wrong);
      }
      if (!check_result.wait.empty()) break;
    }
    return advanced;
  }

  CheckResult run_action(const Action& action) {
    const Rank here{static_cast<std::int32_t>(rank_)};
    const std::size_t at = next_[rank_];
    if (const auto owner = rules_.rank_of(action); owner && *owner != here) {
      return breaks(
          fmt::format("the micro-batch of its chunk belongs to another rank, {}", owner->value));
    }
    if (CheckResult check_result = collectives_.check_not_ended(here, at, action.kind);
        !check_result.ran()) {
      return check_result;
    }
    switch (action.kind) {
      case ActionKind::kLoad:
        return load(action);
      case ActionKind::kSendTargets:
      case ActionKind::kSendActivation:
      case ActionKind::kSendGradient:
        return values_.send(action);
      case ActionKind::kRecvTargets:
      case ActionKind::kRecvActivation:
      case ActionKind::kRecvGradient:
        return values_.post(action);
      case ActionKind::kForward:
      case ActionKind::kBackward:
      case ActionKind::kBackwardInput:
      case ActionKind::kBackwardWeight:
        return compute(here, action);
      case ActionKind::kReduce:
        return collectives_.reduce(here, at, action.chunk);
      case ActionKind::kReduceTied:
        return collectives_.reduce_tied(here, at);
      case ActionKind::kVote:
        if (const auto missing = compute_order_.missing(here)) {
          return breaks(
              fmt::format("its rank has not computed everything: {} is missing", *missing));
        }
        return collectives_.vote(here, at);
      case ActionKind::kStep:
        return collectives_.step(here);
      case ActionKind::kOffer:
        return collectives_.offer(here);
      case ActionKind::kAdopt:
        return collectives_.adopt(here, at);
    }
    return breaks("unknown action");
  }

  CheckResult load(const Action& action) {
    if (values_.is_made(action)) return breaks("loaded twice");
    values_.make(action);
    return {};
  }

  CheckResult compute(Rank here, const Action& action) {
    if (CheckResult check_result = compute_order_.check(here, action); !check_result.ran())
      return check_result;
    if (CheckResult check_result = values_.use(action); !check_result.ran()) return check_result;
    compute_order_.pass(here, action);
    values_.make(action);
    return {};
  }

  // Checks that can only be made at the end.
  Result<void> check_end() {
    for (rank_ = 0; rank_ < schedule_.ranks.size(); ++rank_) {
      if (next_[rank_] == schedule_.ranks[rank_].size()) continue;
      const CheckResult check_result = run_action(schedule_.ranks[rank_][next_[rank_]]);
      return bad_at(schedule_, rank_, next_[rank_],
                    "deadlock: it waits for " + check_result.wait + ", which never comes");
    }
    if (const auto missing = collectives_.missing()) return bad(schedule_, *missing);
    if (const auto message = values_.left_over()) return bad(schedule_, *message);
    return {};
  }

  const Schedule& schedule_;
  const ActionRules rules_;
  ValueLedger values_;
  ComputeOrder compute_order_;
  CollectiveChecks collectives_;
  std::vector<std::size_t> next_;  // [Rank] position in its actions
  std::size_t rank_ = 0;           // the rank that is advanced
};

}  // namespace

Result<ScheduleStats> validate_schedule(const Schedule& schedule, bool tied_across_ranks) {
  MOTLEY_TRY(check_numbers(schedule));
  return Interpreter(schedule, tied_across_ranks).run();
}

}  // namespace motley

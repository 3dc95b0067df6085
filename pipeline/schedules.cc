#include "pipeline/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <tuple>

#include "base/check.h"

namespace motley {
namespace {

using Actions = std::vector<Action>;

// What a chunk computes, in order, when it has a rank of its own: `warm_up` forwards, then one
// backward for each further forward, then the remaining backwards.
Actions chunk_order(ChunkId chunk, int micro_batches, int warm_up) {
  Actions order;
  int next_backward = 0;
  for (int m = 0; m < micro_batches; ++m) {
    if (m >= warm_up) order.push_back({ActionKind::kBackward, chunk, {next_backward++}});
    order.push_back({ActionKind::kForward, chunk, {m}});
  }
  while (next_backward < micro_batches) {
    order.push_back({ActionKind::kBackward, chunk, {next_backward++}});
  }
  return order;
}

// Gives each rank one order of the computing of all its chunks, by running the chunks' own orders
// in unit time steps: in each step each rank runs the most urgent action of its chunks whose input
// exists. The chunks' own orders cannot deadlock when each has a rank of its own, so in each step
// at least one action of some chunk can run; and as the result is the record of a run that reached
// the end, it cannot deadlock either, for any map of chunks to ranks.
class Merger {
 public:
  Merger(const ScheduleInput& input, std::vector<Actions> orders)
      : input_(input),
        orders_(std::move(orders)),
        next_(orders_.size(), 0),
        forwards_(orders_.size(), 0),
        backwards_(orders_.size(), 0),
        ranks_(static_cast<std::size_t>(input.rank_count)) {}

  std::vector<Actions> merge() {
    while (true) {
      const std::vector<std::optional<Action>> chosen = choose();
      const auto is_set = [](const std::optional<Action>& a) { return a.has_value(); };
      if (std::none_of(chosen.begin(), chosen.end(), is_set)) break;
      for (std::size_t r = 0; r < chosen.size(); ++r) {
        if (chosen[r]) run(*chosen[r], r);
      }
    }
    for (std::size_t c = 0; c < orders_.size(); ++c) {
      MOTLEY_CHECK(next_[c] == orders_[c].size(), "chunk {} stopped at {}", c, next_[c]);
    }
    return std::move(ranks_);
  }

 private:
  // For each rank what it runs in this time step, from what earlier steps finished.
  std::vector<std::optional<Action>> choose() const {
    std::vector<std::optional<Action>> chosen(ranks_.size());
    for (std::size_t c = 0; c < orders_.size(); ++c) {
      if (next_[c] == orders_[c].size()) continue;
      const Action& action = orders_[c][next_[c]];
      auto& best = chosen[input_.owners[c][action.micro.index()].index()];
      if (is_ready(action) && (!best || is_more_urgent(action, *best))) best = action;
    }
    return chosen;
  }

  bool is_ready(const Action& action) const {
    const std::size_t c = action.chunk.index();
    if (action.kind == ActionKind::kForward) {
      return c == 0 || forwards_[c - 1] > action.micro.value;
    }
    return c + 1 == orders_.size() || backwards_[c + 1] > action.micro.value;
  }

  // Backwards first, since they free memory; then what is nearest to its end.
  static bool is_more_urgent(const Action& a, const Action& b) {
    const auto key = [](const Action& x) {
      return std::tuple(x.kind != ActionKind::kBackward, x.micro, -x.chunk.value);
    };
    return key(a) < key(b);
  }

  void run(const Action& action, std::size_t rank) {
    const std::size_t c = action.chunk.index();
    ++(action.kind == ActionKind::kForward ? forwards_ : backwards_)[c];
    ++next_[c];
    ranks_[rank].push_back(action);
  }

  const ScheduleInput& input_;
  std::vector<Actions> orders_;    // [ChunkId]
  std::vector<std::size_t> next_;  // [ChunkId] position in its order
  std::vector<int> forwards_;      // [ChunkId] finished
  std::vector<int> backwards_;     // [ChunkId] finished
  std::vector<Actions> ranks_;     // [Rank]
};

// Puts loads, transfers, vote and step around the computing.
class Decorator {
 public:
  explicit Decorator(const ScheduleInput& input)
      : input_(input), last_(static_cast<int>(input.owners.size()) - 1) {}

  // Receives stand before the compute action that precedes the one which consumes them, so that
  // each transfer runs while something else computes.
  Actions decorate(const Actions& computing) const {
    Actions actions;
    if (!computing.empty()) add_receives(actions, computing.front());
    for (std::size_t i = 0; i < computing.size(); ++i) {
      if (i + 1 < computing.size()) add_receives(actions, computing[i + 1]);
      add_load(actions, computing[i]);
      actions.push_back(computing[i]);
      add_sends(actions, computing[i]);
    }
    return actions;
  }

 private:
  Rank owner(int chunk, MicroId micro) const {
    return input_.owners[static_cast<std::size_t>(chunk)][micro.index()];
  }

  bool hands_over(int from_chunk, int to_chunk, MicroId micro) const {
    return owner(from_chunk, micro) == owner(to_chunk, micro);
  }

  void add_receives(Actions& actions, const Action& consumer) const {
    const int c = consumer.chunk.value;
    if (consumer.kind == ActionKind::kBackward) {
      if (c < last_ && !hands_over(c + 1, c, consumer.micro)) {
        actions.push_back({ActionKind::kRecvGradient, consumer.chunk, consumer.micro});
      }
      return;
    }
    if (c == last_ && !hands_over(0, last_, consumer.micro)) {
      actions.push_back({ActionKind::kRecvTargets, {}, consumer.micro});
    }
    if (c > 0 && !hands_over(c - 1, c, consumer.micro)) {
      actions.push_back({ActionKind::kRecvActivation, consumer.chunk, consumer.micro});
    }
  }

  void add_load(Actions& actions, const Action& action) const {
    if (action.kind != ActionKind::kForward || action.chunk.value != 0) return;
    actions.push_back({ActionKind::kLoad, {}, action.micro});
    if (!hands_over(0, last_, action.micro))
      actions.push_back({ActionKind::kSendTargets, {}, action.micro});
  }

  void add_sends(Actions& actions, const Action& action) const {
    const int c = action.chunk.value;
    if (action.kind == ActionKind::kForward) {
      if (c < last_ && !hands_over(c, c + 1, action.micro)) {
        actions.push_back({ActionKind::kSendActivation, action.chunk, action.micro});
      }
    } else if (c > 0 && !hands_over(c, c - 1, action.micro)) {
      actions.push_back({ActionKind::kSendGradient, action.chunk, action.micro});
    }
  }

  const ScheduleInput& input_;
  int last_;
};

void check_input(const ScheduleInput& input) {
  MOTLEY_CHECK(!input.owners.empty(), "a schedule needs a chunk");
  MOTLEY_CHECK(input.micro_batches >= 1, "{} micro-batches", input.micro_batches);
  for (const auto& owners : input.owners) {
    MOTLEY_CHECK(static_cast<int>(owners.size()) == input.micro_batches,
                 "{} owners of {} micro-batches", owners.size(), input.micro_batches);
    for (const Rank rank : owners) {
      MOTLEY_CHECK(rank.value >= 0 && rank.value < input.rank_count, "rank {} of {}", rank.value,
                   input.rank_count);
    }
  }
  MOTLEY_CHECK(!input.tied_across_ranks || input.owners.front() != input.owners.back(),
               "tied parameters on rank {} alone", input.owners.front().front().value);
}

Schedule assemble(std::string name,
                  const ScheduleInput& input,
                  std::vector<Actions> orders,
                  std::span<const Action> ending) {
  Schedule schedule{std::move(name), input.micro_batches, input.owners, {}};
  const Decorator decorator(input);
  for (const Actions& computing : Merger(input, std::move(orders)).merge()) {
    schedule.ranks.push_back(decorator.decorate(computing));
  }
  if (input.tied_across_ranks) {
    for (const Rank rank : {input.owners.front().front(), input.owners.back().front()}) {
      schedule.ranks[rank.index()].push_back({ActionKind::kReduceTied, {}, {}});
    }
  }
  for (Actions& actions : schedule.ranks) {
    actions.insert(actions.end(), ending.begin(), ending.end());
  }
  return schedule;
}

constexpr std::array<Action, 2> kTrainingEnd = {
    {{ActionKind::kVote, {}, {}}, {ActionKind::kStep, {}, {}}}};
constexpr std::array<Action, 1> kForwardEnd = {{{ActionKind::kVote, {}, {}}}};

}  // namespace

Schedule gpipe_schedule(const ScheduleInput& input) {
  check_input(input);
  std::vector<Actions> orders;
  for (int c = 0; c < static_cast<int>(input.owners.size()); ++c) {
    orders.push_back(chunk_order({c}, input.micro_batches, input.micro_batches));
  }
  return assemble("gpipe", input, std::move(orders), kTrainingEnd);
}

Schedule one_f_one_b_schedule(const ScheduleInput& input) {
  check_input(input);
  const int chunks = static_cast<int>(input.owners.size());
  std::vector<Actions> orders;
  for (int c = 0; c < chunks; ++c) {
    orders.push_back(chunk_order({c}, input.micro_batches, chunks - c));
  }
  return assemble("1f1b", input, std::move(orders), kTrainingEnd);
}

Schedule forward_schedule(const ScheduleInput& input) {
  check_input(input);
  ScheduleInput forward_input = input;
  forward_input.tied_across_ranks = false;  // there are no gradients to sum
  std::vector<Actions> orders;
  for (int c = 0; c < static_cast<int>(input.owners.size()); ++c) {
    Actions& order = orders.emplace_back();
    for (int m = 0; m < input.micro_batches; ++m) {
      order.push_back({ActionKind::kForward, {c}, {m}});
    }
  }
  return assemble("forward", forward_input, std::move(orders), kForwardEnd);
}

ScheduleInput schedule_input(const Plan& plan, bool tied_across_ranks) {
  ScheduleInput input;
  for (const ChunkPlan& chunk : plan.chunks) {
    input.owners.push_back(micro_batch_owners(chunk, plan.micro_batches));
  }
  input.rank_count = plan.rank_count();
  input.micro_batches = plan.micro_batches;
  input.tied_across_ranks = tied_across_ranks;
  return input;
}

Result<Schedule> make_schedule(const Plan& plan, bool tied_across_ranks) {
  for (const ChunkPlan& chunk : plan.chunks) {
    if (chunk.replicas.size() == 1) continue;
    return Error{ErrorCode::kConfig, "the plan puts a chunk on several ranks",
                 "no schedule sums their gradients", "plan with one rank for each chunk"};
  }
  const ScheduleInput input = schedule_input(plan, tied_across_ranks);
  if (plan.schedule == "gpipe") return gpipe_schedule(input);
  if (plan.schedule == "1f1b") return one_f_one_b_schedule(input);
  return Error{ErrorCode::kConfig, fmt::format("unknown schedule '{}' in the plan", plan.schedule),
               "", "use gpipe or 1f1b"};
}

}  // namespace motley

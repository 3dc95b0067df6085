#include "pipeline/schedule/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/toml.h"
#include "pipeline/schedule/action_rules.h"
#include "pipeline/schedule/list_schedule.h"
#include "pipeline/schedule/tracks.h"

namespace motley {
namespace {

using Actions = std::vector<Action>;

// Inserts loads and transfers between the compute actions.
class Decorator {
 public:
  explicit Decorator(const ScheduleInput& input) : rules_(input.owners) {}

  // A receive is posted kPostedAhead compute actions before its consumer, so that the transfer and
  // its decoding overlap other computing. Weight parts do not count, because the consumer may be
  // waiting while they run.
  Actions decorate(const Actions& computing) const {
    Actions actions;
    auto unposted = computing.begin();  // first action without a posted receive
    const auto post_next = [&] {
      unposted = std::find_if(unposted, computing.end(), is_awaiting);
      if (unposted != computing.end()) add_receives(actions, *unposted++);
    };
    for (int i = 0; i < kPostedAhead; ++i) post_next();
    for (std::size_t i = 0; i < computing.size(); ++i) {
      if (is_awaiting(computing[i])) post_next();
      add_load(actions, computing[i]);
      add(actions, computing[i]);
    }
    return actions;
  }

 private:
  // One would suffice if actions took longer than a message. A chunk of a single layer that
  // neighbours share is computed faster than its input is decoded.
  static constexpr int kPostedAhead = 2;

  // Whether it may consume a received value.
  static bool is_awaiting(const Action& action) {
    return action.kind != ActionKind::kBackwardWeight;
  }

  // Targets arrive before the activation that they belong to, so their receive is posted before it.
  void add_receives(Actions& actions, const Action& consumer) const {
    const auto first = static_cast<std::ptrdiff_t>(actions.size());
    for (const Value& value : rules_.needs(consumer)) {
      if (rules_.crosses(value)) actions.push_back(ActionRules::post_of(value));
    }
    std::reverse(actions.begin() + first, actions.end());
  }

  void add_load(Actions& actions, const Action& action) const {
    for (const Value& value : rules_.needs(action)) {
      if (value.kind == ValueKind::kSamples) add(actions, {ActionKind::kLoad, {}, action.micro});
    }
  }

  // Adds the action and the sends of its outputs.
  void add(Actions& actions, const Action& action) const {
    actions.push_back(action);
    for (const Value& value : rules_.makes(action)) {
      if (rules_.crosses(value)) actions.push_back(rules_.send_of(value));
    }
  }

  const ActionRules rules_;
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
  MOTLEY_CHECK(
      input.in_flight.empty() ||
          (input.in_flight.size() == input.owners.size() &&
           std::ranges::is_sorted(input.in_flight, std::greater{}) && input.in_flight.back() >= 1),
      "windows that grow");
  MOTLEY_CHECK(input.queued_weights.empty() ||
                   (input.queued_weights.size() == input.owners.size() &&
                    std::ranges::all_of(input.queued_weights, [](int most) { return most >= 1; })),
               "weight parts that may not be queued");
}

// Whether chunk 0 finishes the tied parameter's gradient before or after the others.
enum class TiedEnds { kFirst, kLast };

// All-reduces stand behind all computing, so that no rank delays another's. All ranks run them in
// one order, one at a time, since otherwise two ranks could wait for each other. The order is
// backwards, as gradients become ready. A whole backward ends with the tied parameter, that of the
// embedding; the all-reduce of the rest, which becomes ready layer by layer before, must not wait
// for it.
void add_reductions(Schedule& schedule, bool tied_across_ranks, TiedEnds tied_ends) {
  const auto add = [&](const std::vector<Rank>& group_members, const Action& action) {
    for (const Rank rank : group_members) schedule.ranks[rank.index()].push_back(action);
  };
  const auto add_tied = [&](TiedEnds when) {
    if (!tied_across_ranks || when != tied_ends) return;
    MOTLEY_CHECK(!schedule.islands.empty() || schedule.end_ranks().size() > 1,
                 "tied parameters on one rank");
    for (const std::vector<Rank>& group : schedule.tied_groups()) {
      add(group, {ActionKind::kReduceTied, {}, {}});
    }
  };
  for (ChunkId chunk{schedule.chunk_count() - 1}; chunk.value >= 0; --chunk.value) {
    if (chunk == ChunkId{0}) add_tied(TiedEnds::kFirst);
    for (const std::vector<Rank>& group : schedule.reduce_groups(chunk)) {
      add(group, {ActionKind::kReduce, chunk, {}});
    }
  }
  add_tied(TiedEnds::kLast);
}

// computing: [Rank] F, B, BI and BW in order.
Schedule assemble(std::string name,
                  const ScheduleInput& input,
                  const std::vector<Actions>& computing) {
  Schedule schedule{std::move(name), input.micro_batches, input.owners, {}, input.islands};
  const Decorator decorator(input);
  for (const Actions& actions : computing) schedule.ranks.push_back(decorator.decorate(actions));
  return schedule;
}

Schedule training_schedule(ScheduleKind kind,
                           const ScheduleInput& input,
                           const std::vector<Actions>& computing,
                           TiedEnds tied_ends) {
  Schedule schedule = assemble(schedule_facts(kind).name, input, computing);
  add_reductions(schedule, input.tied_across_ranks, tied_ends);
  for (Actions& actions : schedule.ranks) {
    actions.push_back({ActionKind::kVote, {}, {}});
    actions.push_back({ActionKind::kStep, {}, {}});
    if (input.offers) actions.push_back({ActionKind::kOffer, {}, {}});
    if (input.adopts) actions.push_back({ActionKind::kAdopt, {}, {}});
  }
  return schedule;
}

std::vector<Actions> by_windows(const ScheduleInput& input, const std::vector<int>& windows) {
  check_input(input);
  std::vector<Track> tracks;
  for (std::size_t c = 0; c < input.owners.size(); ++c) {
    std::ranges::move(tracks_of(input.owners[c], ChunkId{static_cast<std::int32_t>(c)}, windows[c]),
                      std::back_inserter(tracks));
  }
  return merge_tracks(input, std::move(tracks));
}

std::vector<int> windows_of(const ScheduleInput& input) {
  if (!input.in_flight.empty()) return input.in_flight;
  std::vector<int> windows;
  for (std::size_t behind = input.owners.size(); behind > 0; --behind) {
    windows.push_back(static_cast<int>(behind));
  }
  return windows;
}

}  // namespace

Schedule gpipe_schedule(const ScheduleInput& input) {
  const std::vector<int> windows(input.owners.size(), input.micro_batches);
  return training_schedule(ScheduleKind::kGpipe, input, by_windows(input, windows),
                           TiedEnds::kLast);
}

Schedule one_f_one_b_schedule(const ScheduleInput& input) {
  return training_schedule(ScheduleKind::kOneFOneB, input, by_windows(input, windows_of(input)),
                           TiedEnds::kLast);
}

Schedule split_schedule(const ScheduleInput& input) {
  check_input(input);
  const std::vector<int> windows = windows_of(input);
  const std::vector<int> queued_weights = input.queued_weights.empty()
                                              ? std::vector(windows.size(), windows.front())
                                              : input.queued_weights;
  // The input parts of chunk 0 end before its weight parts, those of the last chunk do not.
  return training_schedule(ScheduleKind::kSplit, input,
                           list_schedule(input, windows, queued_weights),
                           input.owners.size() > 1 ? TiedEnds::kFirst : TiedEnds::kLast);
}

Schedule forward_schedule(const ScheduleInput& input) {
  check_input(input);
  std::vector<Track> tracks;
  for (int c = 0; c < static_cast<int>(input.owners.size()); ++c) {
    for (Track& track :
         tracks_of(input.owners[static_cast<std::size_t>(c)], {c}, input.micro_batches)) {
      std::erase_if(track.order, [](const Action& a) { return a.kind != ActionKind::kForward; });
      tracks.push_back(std::move(track));
    }
  }
  Schedule schedule = assemble("forward", input, merge_tracks(input, std::move(tracks)));
  for (Actions& actions : schedule.ranks) actions.push_back({ActionKind::kVote, {}, {}});
  return schedule;
}

ScheduleInput schedule_input(const Plan& plan, bool tied_across_ranks) {
  ScheduleInput input;
  input.owners = owners_of(plan);
  for (const ChunkPlan& chunk : plan.chunks) {
    if (chunk.in_flight > 0) input.in_flight.push_back(chunk.in_flight);
    if (chunk.queued_weights > 0) input.queued_weights.push_back(chunk.queued_weights);
    ChunkTimes& times = input.times.emplace_back();
    times.hop = chunk.hop_us;
    for (const Replica& replica : chunk.replicas) times.replicas.push_back(replica.times);
  }
  input.rank_count = plan.rank_count();
  input.micro_batches = plan.micro_batches;
  input.tied_across_ranks = tied_across_ranks;
  return input;
}

Schedule generate_schedule(ScheduleKind kind, const ScheduleInput& input) {
  switch (kind) {
    case ScheduleKind::kGpipe:
      return gpipe_schedule(input);
    case ScheduleKind::kOneFOneB:
      return one_f_one_b_schedule(input);
    case ScheduleKind::kSplit:
      return split_schedule(input);
  }
  MOTLEY_CHECK(false, "schedule {} has no generator", static_cast<int>(kind));
}

namespace {

// Divides the micro-batches like the replicas' own numbers, as evenly as whole numbers allow.
void give_all(std::vector<Replica>& replicas, int micro_batches) {
  int own = 0;
  for (const Replica& replica : replicas) own += replica.micro_batches;
  int before = 0;
  int given = 0;
  for (Replica& replica : replicas) {
    before += replica.micro_batches;
    const int until = static_cast<int>(std::int64_t{micro_batches} * before / own);
    replica.micro_batches = until - given;
    given = until;
  }
}

}  // namespace

Plan plan_of_island(const Plan& plan, int island) {
  Plan part = plan;
  part.micro_batches = 0;
  for (ChunkPlan& chunk : part.chunks) {
    std::erase_if(chunk.replicas, [&](const Replica& replica) {
      return island_of(plan.rounds, replica.rank) != island;
    });
  }
  for (const Replica& replica : part.chunks.front().replicas) {
    part.micro_batches += replica.micro_batches;
  }
  part.rounds.reset();
  return part;
}

Plan plan_of_start(const Plan& plan) {
  Plan start = plan_of_island(plan, plan.rounds->start_island);
  for (ChunkPlan& chunk : start.chunks) give_all(chunk.replicas, plan.micro_batches);
  start.micro_batches = plan.micro_batches;
  return start;
}

Schedule exchange_schedule(const Plan& plan) {
  const std::vector<Action> actions = {{ActionKind::kOffer, {}, {}}, {ActionKind::kAdopt, {}, {}}};
  const std::vector<std::vector<Action>> ranks(plan.ranks.size(), actions);
  return {"exchange", plan.micro_batches, owners_of(plan), ranks, {}};
}

Result<Schedule> make_schedule(const Plan& plan, bool tied_across_ranks, StepScope scope) {
  const bool is_start = scope == StepScope::kStart || scope == StepScope::kStartEnd;
  ScheduleInput input = schedule_input(is_start ? plan_of_start(plan) : plan, tied_across_ranks);
  if (scope != StepScope::kSynchronous) input.islands = plan.rounds->islands;
  const bool does_both = scope == StepScope::kRoundEnd || scope == StepScope::kStartEnd;
  input.offers = does_both || scope == StepScope::kOffer;
  input.adopts = does_both || scope == StepScope::kAdopt;
  if (const ScheduleFacts* facts = find_schedule(plan.schedule)) {
    return generate_schedule(facts->kind, input);
  }
  return Error{ErrorCode::kConfig, fmt::format("unknown schedule '{}' in the plan", plan.schedule),
               "", fmt::format("use {}", word_list(schedule_names(), "or"))};
}

}  // namespace motley

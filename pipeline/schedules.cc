#include "pipeline/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

using Actions = std::vector<Action>;

// What one replica of a chunk computes, in order, when it has a rank of its own.
struct Track {
  Rank rank;
  Actions order;
};

// The replicas' orders of a chunk through which at most `window` micro-batches travel at a time: on
// one rank, `window` forwards, then backward and forward in turn. With several replicas each does
// its own micro-batches' part of that order, so the order of one rank is a run of them all, and
// what cannot deadlock undivided cannot deadlock divided.
std::vector<Track> tracks_of(const std::vector<Rank>& owners, ChunkId chunk, int window) {
  std::vector<Track> tracks;
  for (const Rank rank : distinct_ranks(owners)) tracks.push_back({rank, {}});
  const auto add = [&](ActionKind kind, int m) {
    const auto track = std::ranges::lower_bound(tracks, owners[static_cast<std::size_t>(m)], {},
                                                [](const Track& t) { return t.rank; });
    track->order.push_back({kind, chunk, {m}});
  };
  const int micro_batches = static_cast<int>(owners.size());
  int next_backward = 0;
  for (int m = 0; m < micro_batches; ++m) {
    if (m >= window) add(ActionKind::kBackward, next_backward++);
    add(ActionKind::kForward, m);
  }
  while (next_backward < micro_batches) add(ActionKind::kBackward, next_backward++);
  return tracks;
}

// Gives each rank one order of the computing of all its tracks, by running the tracks in unit time
// steps: in each step each rank runs the most urgent action of its tracks whose input exists. The
// tracks cannot deadlock when each has a rank of its own, so in each step at least one action of
// some track can run; and as the result is the record of a run that reached the end, it cannot
// deadlock either, for any map of micro-batches to ranks.
//
// A track is looked at only when its next action may have become ready, so merging takes
// O(actions x log tracks of a rank).
class Merger {
 public:
  Merger(const ScheduleInput& input, std::vector<Track> tracks)
      : micros_(static_cast<std::size_t>(input.micro_batches)),
        chunks_(input.owners.size()),
        tracks_(std::move(tracks)),
        next_(tracks_.size(), 0),
        is_queued_(tracks_.size(), false),
        track_at_(chunks_ * micros_),
        forwarded_(chunks_ * micros_, false),
        backwarded_(chunks_ * micros_, false),
        ready_(static_cast<std::size_t>(input.rank_count)),
        ranks_(ready_.size()) {
    for (std::size_t t = 0; t < tracks_.size(); ++t) {
      for (const Action& action : tracks_[t].order) track_at_[place(action)] = t;
    }
  }

  std::vector<Actions> merge() {
    for (std::size_t t = 0; t < tracks_.size(); ++t) queue_if_ready(t);
    while (!awake_.empty()) run_step();
    for (std::size_t t = 0; t < tracks_.size(); ++t) {
      MOTLEY_CHECK(next_[t] == tracks_[t].order.size(), "a track of rank {} stopped at {}",
                   tracks_[t].rank.value, next_[t]);
    }
    return std::move(ranks_);
  }

 private:
  // Backwards first, since they free memory; then what is nearest to its end.
  using Urgency = std::tuple<bool, MicroId, int, std::size_t>;  // the last is the track

  // Each rank with something ready runs one action; what that makes ready counts from the next
  // step.
  void run_step() {
    std::vector<std::size_t> ran;  // tracks
    for (const std::size_t rank : std::exchange(awake_, {})) {
      const std::size_t t = std::get<std::size_t>(*ready_[rank].begin());
      ready_[rank].erase(ready_[rank].begin());
      is_queued_[t] = false;
      if (!ready_[rank].empty()) awake_.push_back(rank);
      const Action& action = tracks_[t].order[next_[t]++];
      (action.kind == ActionKind::kForward ? forwarded_ : backwarded_)[place(action)] = true;
      ranks_[rank].push_back(action);
      ran.push_back(t);
    }
    for (const std::size_t t : ran) {
      queue_if_ready(t);
      const Action& action = tracks_[t].order[next_[t] - 1];
      const std::size_t c = action.chunk.index();
      if (action.kind == ActionKind::kForward && c + 1 < chunks_) {
        queue_if_ready(track_at_[place(action) + micros_]);
      }
      if (action.kind == ActionKind::kBackward && c > 0) {
        queue_if_ready(track_at_[place(action) - micros_]);
      }
    }
  }

  void queue_if_ready(std::size_t t) {
    if (is_queued_[t] || next_[t] == tracks_[t].order.size()) return;
    const Action& action = tracks_[t].order[next_[t]];
    if (!is_ready(action)) return;
    is_queued_[t] = true;
    const std::size_t rank = tracks_[t].rank.index();
    if (ready_[rank].empty()) awake_.push_back(rank);
    ready_[rank].insert(
        {action.kind != ActionKind::kBackward, action.micro, -action.chunk.value, t});
  }

  // Whether the very micro-batch has come from the chunk before, or its gradient from the one
  // after.
  bool is_ready(const Action& action) const {
    const std::size_t c = action.chunk.index();
    if (action.kind == ActionKind::kForward) return c == 0 || forwarded_[place(action) - micros_];
    return c + 1 == chunks_ || backwarded_[place(action) + micros_];
  }

  std::size_t place(const Action& action) const {
    return action.chunk.index() * micros_ + action.micro.index();
  }

  std::size_t micros_;
  std::size_t chunks_;
  std::vector<Track> tracks_;
  std::vector<std::size_t> next_;         // [track] position in its order
  std::vector<bool> is_queued_;           // [track] whether its next action is in ready_
  std::vector<std::size_t> track_at_;     // [ChunkId][MicroId]
  std::vector<bool> forwarded_;           // [ChunkId][MicroId] finished
  std::vector<bool> backwarded_;          // [ChunkId][MicroId] finished
  std::vector<std::set<Urgency>> ready_;  // [Rank]
  std::vector<std::size_t> awake_;        // ranks with something ready
  std::vector<Actions> ranks_;            // [Rank]
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
  MOTLEY_CHECK(!input.tied_across_ranks ||
                   distinct_ranks(input.owners.front()) != distinct_ranks(input.owners.back()),
               "tied parameters on the same ranks");
}

// After all computing, so that no rank holds up another's computing. The chunks come in one order
// on all ranks, else two ranks could wait for each other: backwards, as their gradients are ready.
void add_reductions(Schedule& schedule) {
  for (ChunkId chunk{schedule.chunk_count() - 1}; chunk.value >= 0; --chunk.value) {
    const std::vector<Rank> holders = schedule.holders(chunk);
    if (holders.size() == 1) continue;
    for (const Rank rank : holders) {
      schedule.ranks[rank.index()].push_back({ActionKind::kReduce, chunk, {}});
    }
  }
}

void add_tied_reductions(Schedule& schedule) {
  std::vector<Rank> ranks = schedule.owners.front();
  ranks.insert(ranks.end(), schedule.owners.back().begin(), schedule.owners.back().end());
  for (const Rank rank : distinct_ranks(ranks)) {
    schedule.ranks[rank.index()].push_back({ActionKind::kReduceTied, {}, {}});
  }
}

Schedule assemble(std::string name, const ScheduleInput& input, std::vector<Track> tracks) {
  Schedule schedule{std::move(name), input.micro_batches, input.owners, {}};
  const Decorator decorator(input);
  for (const Actions& computing : Merger(input, std::move(tracks)).merge()) {
    schedule.ranks.push_back(decorator.decorate(computing));
  }
  return schedule;
}

Schedule training_schedule(std::string name,
                           const ScheduleInput& input,
                           const std::function<int(int chunk)>& window) {
  check_input(input);
  std::vector<Track> tracks;
  for (int c = 0; c < static_cast<int>(input.owners.size()); ++c) {
    std::ranges::move(tracks_of(input.owners[static_cast<std::size_t>(c)], {c}, window(c)),
                      std::back_inserter(tracks));
  }
  Schedule schedule = assemble(std::move(name), input, std::move(tracks));
  add_reductions(schedule);
  if (input.tied_across_ranks) add_tied_reductions(schedule);
  for (Actions& actions : schedule.ranks) {
    actions.push_back({ActionKind::kVote, {}, {}});
    actions.push_back({ActionKind::kStep, {}, {}});
  }
  return schedule;
}

}  // namespace

Schedule gpipe_schedule(const ScheduleInput& input) {
  return training_schedule("gpipe", input, [&](int) { return input.micro_batches; });
}

Schedule one_f_one_b_schedule(const ScheduleInput& input) {
  const int chunks = static_cast<int>(input.owners.size());
  return training_schedule("1f1b", input, [&](int c) { return chunks - c; });
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
  Schedule schedule = assemble("forward", input, std::move(tracks));
  for (Actions& actions : schedule.ranks) actions.push_back({ActionKind::kVote, {}, {}});
  return schedule;
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
  const ScheduleInput input = schedule_input(plan, tied_across_ranks);
  if (plan.schedule == "gpipe") return gpipe_schedule(input);
  if (plan.schedule == "1f1b") return one_f_one_b_schedule(input);
  return Error{ErrorCode::kConfig, fmt::format("unknown schedule '{}' in the plan", plan.schedule),
               "", "use gpipe or 1f1b"};
}

}  // namespace motley

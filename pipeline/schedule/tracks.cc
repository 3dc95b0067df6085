#include "pipeline/schedule/tracks.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "pipeline/schedule/action_rules.h"

namespace motley {
namespace {

using Actions = std::vector<Action>;

class Merger {
 public:
  Merger(const ScheduleInput& input, std::vector<Track> tracks)
      : rules_(input.owners),
        tracks_(std::move(tracks)),
        next_(tracks_.size(), 0),
        is_queued_(tracks_.size(), false),
        track_at_(rules_.chunk_count() * rules_.micro_batches()),
        made_(rules_.value_count(), false),
        ready_(static_cast<std::size_t>(input.rank_count)),
        ranks_(ready_.size()) {
    for (std::size_t t = 0; t < tracks_.size(); ++t) {
      for (const Action& action : tracks_[t].order) {
        track_at_[place(action.chunk, action.micro)] = t;
      }
    }
    // Loads precede the actions that need them.
    for (MicroId micro{0}; micro.index() < rules_.micro_batches(); ++micro.value) {
      note_made({ActionKind::kLoad, {}, micro});
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

  // Each rank with a ready action runs one; what that makes ready counts from the next time step.
  void run_step() {
    std::vector<std::size_t> ran;  // tracks
    for (const std::size_t rank : std::exchange(awake_, {})) {
      ran.push_back(run_most_urgent(rank));
      if (!ready_[rank].empty()) awake_.push_back(rank);
    }
    for (const std::size_t t : ran) {
      queue_if_ready(t);
      for (const Value& value : rules_.makes(tracks_[t].order[next_[t] - 1])) {
        queue_if_ready(track_at_[place(value.chunk, value.micro)]);
      }
    }
  }

  // Returns its track.
  std::size_t run_most_urgent(std::size_t rank) {
    const std::size_t t = std::get<std::size_t>(*ready_[rank].begin());
    ready_[rank].erase(ready_[rank].begin());
    is_queued_[t] = false;
    const Action& action = tracks_[t].order[next_[t]++];
    note_made(action);
    ranks_[rank].push_back(action);
    return t;
  }

  void queue_if_ready(std::size_t t) {
    if (is_queued_[t] || next_[t] == tracks_[t].order.size()) return;
    const Action& action = tracks_[t].order[next_[t]];
    if (!is_ready(action)) return;
    is_queued_[t] = true;
    const std::size_t rank = tracks_[t].rank.index();
    if (ready_[rank].empty()) awake_.push_back(rank);
    ready_[rank].insert(
        {action.kind == ActionKind::kForward, action.micro, -action.chunk.value, t});
  }

  bool is_ready(const Action& action) const {
    return std::ranges::all_of(
        rules_.needs(action), [this](const Value& value) { return made_[rules_.index_of(value)]; });
  }

  void note_made(const Action& action) {
    for (const Value& value : rules_.makes(action)) made_[rules_.index_of(value)] = true;
  }

  std::size_t place(ChunkId chunk, MicroId micro) const {
    return chunk.index() * rules_.micro_batches() + micro.index();
  }

  const ActionRules rules_;
  std::vector<Track> tracks_;
  std::vector<std::size_t> next_;         // [track] position in its order
  std::vector<bool> is_queued_;           // [track] whether its next action is in ready_
  std::vector<std::size_t> track_at_;     // [ChunkId][MicroId]
  std::vector<bool> made_;                // [value]
  std::vector<std::set<Urgency>> ready_;  // [Rank]
  std::vector<std::size_t> awake_;        // ranks with something to do, each once
  std::vector<Actions> ranks_;            // [Rank]
};

}  // namespace

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

std::vector<Actions> merge_tracks(const ScheduleInput& input, std::vector<Track> tracks) {
  return Merger(input, std::move(tracks)).merge();
}

}  // namespace motley

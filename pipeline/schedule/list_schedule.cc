#include "pipeline/schedule/list_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "pipeline/schedule/action_rules.h"
#include "plan/assign_micro_batches.h"

namespace motley {
namespace {

using Ticks = std::int64_t;

// The part of one rank in one chunk.
struct HeldChunk {
  std::size_t chunk = 0;
  std::size_t rank = 0;
  bool is_summed = false;       // all-reduced over its replicas after all its weight parts
  std::vector<MicroId> micros;  // in order
  std::size_t forwards = 0;     // number of micros begun
  std::size_t backwards = 0;    // number of input parts begun
  int queued_weights = 0;
  int window = 1;
  int queued_weights_max = 1;
  PassTimes times;
};

class ListRun {
 public:
  ListRun(const ScheduleInput& input,
          const std::vector<int>& windows,
          const std::vector<int>& queued_weights_max)
      : input_(input),
        rules_(input.owners),
        micros_(static_cast<std::size_t>(input.micro_batches)),
        chunks_(input.owners.size()),
        track_at_(chunks_ * micros_),
        there_(rules_.value_count(), false),
        ranks_(static_cast<std::size_t>(input.rank_count)) {
    for (std::size_t c = 0; c < chunks_; ++c) {
      const std::vector<Rank> owners = distinct_ranks(input.owners[c]);
      const std::size_t first = tracks_.size();
      for (std::size_t k = 0; k < owners.size(); ++k) {
        HeldChunk& track = tracks_.emplace_back();
        track.chunk = c;
        track.rank = owners[k].index();
        track.is_summed = owners.size() > 1;
        track.queued_weights_max = queued_weights_max[c];
        if (!input.times.empty()) track.times = input.times[c].replicas[k];
      }
      std::vector<std::size_t> numbers;
      for (std::size_t m = 0; m < micros_; ++m) {
        const auto owner = std::ranges::lower_bound(owners, input.owners[c][m]);
        numbers.push_back(static_cast<std::size_t>(owner - owners.begin()));
        const std::size_t t = first + numbers.back();
        track_at_[c * micros_ + m] = t;
        tracks_[t].micros.push_back(MicroId{static_cast<std::int32_t>(m)});
      }
      const std::vector<int> own_windows = max_in_window(numbers, owners.size(), windows[c]);
      for (std::size_t k = 0; k < owners.size(); ++k) tracks_[first + k].window = own_windows[k];
    }
  }

  std::vector<std::vector<Action>> run() {
    for (MicroId micro{0}; micro.index() < micros_; ++micro.value) {
      for (const Value& value : rules_.makes({ActionKind::kLoad, {}, micro})) note_there(value);
    }
    for (std::size_t t = 0; t < tracks_.size(); ++t) look_at(t);
    for (std::size_t r = 0; r < ranks_.size(); ++r) begin_next(r, 0);
    while (!events_.empty()) {
      const Ticks now = events_.top().time;
      // All events of one time are applied before a rank chooses its next action.
      looking_.clear();
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        looking_.push_back(happen(event));
      }
      std::ranges::sort(looking_);
      // std::unique, not std::ranges::unique: clang 14, which builds the fuzz targets, does not
      // compile std::ranges::subrange.
      looking_.erase(std::unique(looking_.begin(), looking_.end()), looking_.end());
      for (const std::size_t r : looking_) begin_next(r, now);
    }
    std::vector<std::vector<Action>> orders;
    for (RankState& rank : ranks_) orders.push_back(std::move(rank.order));
    for (const HeldChunk& track : tracks_) {
      MOTLEY_CHECK(track.backwards == track.micros.size(), "chunk {} stopped at {}", track.chunk,
                   track.backwards);
    }
    return orders;
  }

 private:
  static constexpr std::size_t kNoRank = SIZE_MAX;

  // A value arrives, or a rank becomes free. Events of one time may be applied in any order.
  struct Event {
    Ticks time = 0;
    std::size_t free_rank = kNoRank;
    Value value;

    friend bool operator>(const Event& a, const Event& b) { return a.time > b.time; }
  };

  // Input parts first, since they free memory and other ranks wait for them; then what is nearest
  // to its end.
  using Urgency = std::tuple<bool, MicroId, std::int64_t, std::size_t>;  // the last is the track

  using Weights = std::deque<std::pair<std::size_t, MicroId>>;  // by track

  struct RankState {
    std::vector<Urgency> ready;  // each once, the most urgent last: a few
    Weights weights;             // in the order of input parts
    Ticks uplink_free = 0;
    bool busy = false;
    std::vector<Action> order;
  };

  // Applies the event. Returns the rank that may have something to do now.
  std::size_t happen(const Event& event) {
    if (event.free_rank != kNoRank) {
      ranks_[event.free_rank].busy = false;
      return event.free_rank;
    }
    note_there(event.value);
    const std::size_t t = track_of(event.value);
    look_at(t);
    return tracks_[t].rank;
  }

  void note_there(const Value& value) { there_[rules_.index_of(value)] = true; }

  std::size_t track_of(const Value& value) const {
    return track_at_[value.chunk.index() * micros_ + value.micro.index()];
  }

  bool is_ready(const HeldChunk& track, ActionKind kind, MicroId micro) const {
    const ChunkId chunk{static_cast<std::int32_t>(track.chunk)};
    return std::ranges::all_of(rules_.needs({kind, chunk, micro}), [this](const Value& value) {
      return there_[rules_.index_of(value)];
    });
  }

  Urgency urgency(std::size_t t, bool is_forward) const {
    const HeldChunk& track = tracks_[t];
    const MicroId micro = track.micros[is_forward ? track.forwards : track.backwards];
    return {is_forward, micro, -static_cast<std::int64_t>(track.chunk), t};
  }

  static void add_ready(std::vector<Urgency>& ready, const Urgency& urgency) {
    const auto place = std::ranges::lower_bound(ready, urgency, std::greater<>());
    if (place == ready.end() || *place != urgency) ready.insert(place, urgency);
  }

  // Records what the track could do next.
  void look_at(std::size_t t) {
    const HeldChunk& track = tracks_[t];
    std::vector<Urgency>& ready = ranks_[track.rank].ready;
    const auto in_flight = static_cast<int>(track.forwards - track.backwards);
    if (track.forwards < track.micros.size() && in_flight < track.window &&
        is_ready(track, ActionKind::kForward, track.micros[track.forwards])) {
      add_ready(ready, urgency(t, /*is_forward=*/true));
    }
    if (track.backwards < track.forwards &&
        is_ready(track, ActionKind::kBackwardInput, track.micros[track.backwards])) {
      add_ready(ready, urgency(t, /*is_forward=*/false));
    }
  }

  void begin_next(std::size_t r, Ticks now) {
    RankState& rank = ranks_[r];
    if (rank.busy) return;
    if (rank.ready.empty()) {
      // An all-reduce can begin while weight parts of other chunks run.
      const auto summed =
          oldest_weight(rank, [](const HeldChunk& track) { return track.is_summed; });
      if (!rank.weights.empty()) {
        backward_weight(rank, summed == rank.weights.end() ? rank.weights.begin() : summed, now);
      }
      return;
    }
    const auto [is_forward, micro, minus_chunk, t] = rank.ready.back();
    const HeldChunk& next = tracks_[t];
    if (!is_forward && next.queued_weights == next.queued_weights_max) {
      backward_weight(
          rank, oldest_weight(rank, [&](const HeldChunk& track) { return &track == &next; }), now);
      return;
    }
    rank.ready.pop_back();
    if (is_forward) {
      forward(t, micro, now);
    } else {
      backward_input(t, micro, now);
    }
  }

  template <class Wanted>
  Weights::iterator oldest_weight(RankState& rank, Wanted wanted) const {
    return std::ranges::find_if(rank.weights,
                                [&](const auto& weight) { return wanted(tracks_[weight.first]); });
  }

  void forward(std::size_t t, MicroId micro, Ticks now) {
    HeldChunk& track = tracks_[t];
    // Another ready forward of this track stays ready only within the window.
    ++track.forwards;
    occupy(t, ActionKind::kForward, micro, track.times.forward, now);
    look_at(t);
  }

  void backward_input(std::size_t t, MicroId micro, Ticks now) {
    HeldChunk& track = tracks_[t];
    ++track.backwards;
    ++track.queued_weights;
    ranks_[track.rank].weights.emplace_back(t, micro);
    occupy(t, ActionKind::kBackwardInput, micro, track.times.backward_input, now);
    look_at(t);
  }

  void backward_weight(RankState& rank, Weights::iterator which, Ticks now) {
    const auto [t, micro] = *which;
    rank.weights.erase(which);
    HeldChunk& track = tracks_[t];
    --track.queued_weights;
    occupy(t, ActionKind::kBackwardWeight, micro, track.times.backward_weight, now);
  }

  void occupy(std::size_t t, ActionKind kind, MicroId micro, Ticks duration, Ticks now) {
    const HeldChunk& track = tracks_[t];
    RankState& rank = ranks_[track.rank];
    const Action action{kind, ChunkId{static_cast<std::int32_t>(track.chunk)}, micro};
    rank.order.push_back(action);
    rank.busy = true;
    const Ticks end = now + duration;
    events_.push({end, track.rank, {}});
    for (const Value& value : rules_.makes(action)) {
      if (is_own(value)) {
        // Its consumer cannot run before this rank is free again.
        note_there(value);
      } else {
        events_.push({arrival(track, value, end), kNoRank, value});
      }
    }
  }

  // Whether the track that makes it also uses it.
  bool is_own(const Value& value) const { return value.chunk == rules_.maker_chunk(value); }

  // The arrival time of a value made at `made`; within a rank at once. A rank's messages leave one
  // after the other.
  Ticks arrival(const HeldChunk& from, const Value& value, Ticks made) {
    if (!rules_.crosses(value)) return made;
    Ticks& uplink_free = ranks_[from.rank].uplink_free;
    const Ticks hop = input_.times.empty() ? 0 : input_.times[rules_.boundary(value).index()].hop;
    uplink_free = std::max(uplink_free, made) + hop;
    return uplink_free;
  }

  const ScheduleInput& input_;
  const ActionRules rules_;
  const std::size_t micros_;
  const std::size_t chunks_;
  std::vector<HeldChunk> tracks_;      // chunk after chunk
  std::vector<std::size_t> track_at_;  // [ChunkId][MicroId]
  std::vector<bool> there_;            // [value]
  std::vector<RankState> ranks_;       // [Rank]
  std::vector<std::size_t> looking_;   // ranks with an event at the current time
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

std::vector<std::vector<Action>> list_schedule(const ScheduleInput& input,
                                               const std::vector<int>& windows,
                                               const std::vector<int>& queued_weights_max) {
  return ListRun(input, windows, queued_weights_max).run();
}

}  // namespace motley

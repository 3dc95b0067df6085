#include "pipeline/schedule/list_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

using Ticks = std::int64_t;

// What one rank does of one chunk.
struct HeldChunk {
  std::size_t chunk = 0;
  std::size_t rank = 0;
  bool is_summed = false;       // by its replicas, when all of its weight parts are done
  std::vector<MicroId> micros;  // in order
  std::size_t forwards = 0;     // begun, of micros
  std::size_t backwards = 0;    // input parts begun
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
        micros_(static_cast<std::size_t>(input.micro_batches)),
        chunks_(input.owners.size()),
        track_at_(chunks_ * micros_),
        input_there_(chunks_ * micros_, false),
        gradient_there_(chunks_ * micros_, false),
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
      for (std::size_t m = 0; m < micros_; ++m) {
        const auto owner = std::ranges::lower_bound(owners, input.owners[c][m]);
        const std::size_t t = first + static_cast<std::size_t>(owner - owners.begin());
        track_at_[c * micros_ + m] = t;
        tracks_[t].micros.push_back(MicroId{static_cast<std::int32_t>(m)});
      }
      for (std::size_t t = first; t < tracks_.size(); ++t) {
        tracks_[t].window = in_flight_of_share(
            windows[c], static_cast<int>(tracks_[t].micros.size()), input.micro_batches);
      }
    }
  }

  std::vector<std::vector<Action>> run() {
    for (std::size_t m = 0; m < micros_; ++m) input_there_[m] = true;
    for (std::size_t t = 0; t < tracks_.size(); ++t) look_at(t);
    for (std::size_t r = 0; r < ranks_.size(); ++r) begin_next(r, 0);
    while (!events_.empty()) {
      const Ticks now = events_.top().time;
      // All that happens at one moment counts before anybody decides.
      std::set<std::size_t> looking;  // ranks
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        looking.insert(happen(event));
      }
      for (const std::size_t r : looking) begin_next(r, now);
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
  enum class EventKind : std::uint8_t { kInputComes, kGradientComes, kRankIsFree };

  struct Event {
    Ticks time = 0;
    EventKind kind = EventKind::kRankIsFree;
    std::size_t what = 0;  // place of the micro-batch, or rank

    friend bool operator>(const Event& a, const Event& b) {
      return std::tie(a.time, a.kind, a.what) > std::tie(b.time, b.kind, b.what);
    }
  };

  // Input parts first, since they free memory and others wait for them; then what is nearest to its
  // end.
  using Urgency = std::tuple<bool, MicroId, std::int64_t, std::size_t>;  // the last is the track

  using Weights = std::deque<std::pair<std::size_t, MicroId>>;  // by track

  struct RankState {
    std::set<Urgency> ready;
    Weights weights;  // in the order of input parts
    Ticks uplink_free = 0;
    bool busy = false;
    std::vector<Action> order;
  };

  // Returns the rank that may have something to do now.
  std::size_t happen(const Event& event) {
    if (event.kind == EventKind::kRankIsFree) {
      ranks_[event.what].busy = false;
      return event.what;
    }
    (event.kind == EventKind::kInputComes ? input_there_ : gradient_there_)[event.what] = true;
    const std::size_t t = track_at_[event.what];
    look_at(t);
    return tracks_[t].rank;
  }

  std::size_t place(const HeldChunk& track, std::size_t nth) const {
    return track.chunk * micros_ + track.micros[nth].index();
  }

  Urgency urgency(std::size_t t, bool is_forward) const {
    const HeldChunk& track = tracks_[t];
    const MicroId micro = track.micros[is_forward ? track.forwards : track.backwards];
    return {is_forward, micro, -static_cast<std::int64_t>(track.chunk), t};
  }

  // Notes what the track could do next.
  void look_at(std::size_t t) {
    const HeldChunk& track = tracks_[t];
    std::set<Urgency>& ready = ranks_[track.rank].ready;
    const auto in_flight = static_cast<int>(track.forwards - track.backwards);
    if (track.forwards < track.micros.size() && in_flight < track.window &&
        input_there_[place(track, track.forwards)]) {
      ready.insert(urgency(t, /*is_forward=*/true));
    }
    if (track.backwards < track.forwards && gradient_there_[place(track, track.backwards)]) {
      ready.insert(urgency(t, /*is_forward=*/false));
    }
  }

  void begin_next(std::size_t r, Ticks now) {
    RankState& rank = ranks_[r];
    if (rank.busy) return;
    if (rank.ready.empty()) {
      // A sum can begin while weight parts of other chunks are done.
      const auto summed =
          oldest_weight(rank, [](const HeldChunk& track) { return track.is_summed; });
      if (!rank.weights.empty()) {
        backward_weight(rank, summed == rank.weights.end() ? rank.weights.begin() : summed, now);
      }
      return;
    }
    const auto [is_forward, micro, minus_chunk, t] = *rank.ready.begin();
    const HeldChunk& next = tracks_[t];
    if (!is_forward && next.queued_weights == next.queued_weights_max) {
      backward_weight(
          rank, oldest_weight(rank, [&](const HeldChunk& track) { return &track == &next; }), now);
      return;
    }
    rank.ready.erase(rank.ready.begin());
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
    // Another forward of this track that was ready stays so only within the window.
    ++track.forwards;
    const Ticks end = occupy(track, ActionKind::kForward, micro, track.times.forward, now);
    const std::size_t at = track.chunk * micros_ + micro.index();
    if (track.chunk + 1 == chunks_) {
      events_.push({end, EventKind::kGradientComes, at});
    } else {
      events_.push(
          {arrival(track, at + micros_, track.chunk, end), EventKind::kInputComes, at + micros_});
    }
    look_at(t);
  }

  void backward_input(std::size_t t, MicroId micro, Ticks now) {
    HeldChunk& track = tracks_[t];
    ++track.backwards;
    ++track.queued_weights;
    const Ticks end =
        occupy(track, ActionKind::kBackwardInput, micro, track.times.backward_input, now);
    ranks_[track.rank].weights.emplace_back(t, micro);
    const std::size_t at = track.chunk * micros_ + micro.index();
    if (track.chunk > 0) {
      events_.push({arrival(track, at - micros_, track.chunk - 1, end), EventKind::kGradientComes,
                    at - micros_});
    }
    look_at(t);
  }

  void backward_weight(RankState& rank, Weights::iterator which, Ticks now) {
    const auto [t, micro] = *which;
    rank.weights.erase(which);
    HeldChunk& track = tracks_[t];
    --track.queued_weights;
    static_cast<void>(
        occupy(track, ActionKind::kBackwardWeight, micro, track.times.backward_weight, now));
  }

  // Returns when the action ends.
  Ticks occupy(const HeldChunk& track, ActionKind kind, MicroId micro, Ticks duration, Ticks now) {
    RankState& rank = ranks_[track.rank];
    rank.order.push_back({kind, ChunkId{static_cast<std::int32_t>(track.chunk)}, micro});
    rank.busy = true;
    events_.push({now + duration, EventKind::kRankIsFree, track.rank});
    return now + duration;
  }

  // When what leaves a rank over the boundary behind `boundary` is at `place`; within a rank at
  // once. A rank's messages leave one after the other.
  Ticks arrival(const HeldChunk& from, std::size_t place, std::size_t boundary, Ticks sent) {
    if (tracks_[track_at_[place]].rank == from.rank) return sent;
    Ticks& uplink_free = ranks_[from.rank].uplink_free;
    uplink_free =
        std::max(uplink_free, sent) + (input_.times.empty() ? 0 : input_.times[boundary].hop);
    return uplink_free;
  }

  const ScheduleInput& input_;
  const std::size_t micros_;
  const std::size_t chunks_;
  std::vector<HeldChunk> tracks_;      // chunk after chunk
  std::vector<std::size_t> track_at_;  // [ChunkId][MicroId]
  std::vector<bool> input_there_;      // [ChunkId][MicroId]
  std::vector<bool> gradient_there_;   // [ChunkId][MicroId]
  std::vector<RankState> ranks_;       // [Rank]
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

std::vector<std::vector<Action>> list_schedule(const ScheduleInput& input,
                                               const std::vector<int>& windows,
                                               const std::vector<int>& queued_weights_max) {
  return ListRun(input, windows, queued_weights_max).run();
}

}  // namespace motley

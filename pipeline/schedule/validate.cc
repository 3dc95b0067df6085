// An interpreter of schedules that computes nothing. It knows the meaning of each action and no
// generator. Sends never block; a compute action blocks until its input was sent; the reductions
// of gradients and the vote block until all their ranks have come. Under these rules what one
// rank does never takes away what another waits for, so the order in which ranks are advanced here
// does not matter: if one order gets stuck, all do.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/schedule/schedules.h"

namespace motley {
namespace {

// The kinds of message; with chunk and micro-batch they name one message of the step, and the
// owners give its sender and its receiver.
enum Stream : std::size_t { kActivations, kGradients, kTargets, kStreamCount };

struct Message {
  bool sent = false;
  bool posted = false;
  bool consumed = false;
};

class Interpreter {
 public:
  explicit Interpreter(const Schedule& schedule)
      : schedule_(schedule),
        chunks_(schedule.owners.size()),
        micros_(static_cast<std::size_t>(std::max(0, schedule.micro_batches))),
        training_(schedule.name != "forward") {}

  Result<ScheduleStats> run() {
    MOTLEY_TRY(check_header());
    prepare();
    bool progress = true;
    while (progress) {
      progress = false;
      for (rank_ = 0; rank_ < schedule_.ranks.size(); ++rank_) {
        MOTLEY_ASSIGN(const bool advanced, advance());
        progress = progress || advanced;
      }
    }
    MOTLEY_TRY(check_end());
    return stats_;
  }

 private:
  // What came of trying an action; both empty: it ran.
  struct Outcome {
    std::string wait;   // what it has to wait for
    std::string wrong;  // why it can never run
  };

  // What one rank has of one chunk.
  struct Share {
    std::vector<std::size_t> micros;
    std::size_t forwards = 0;              // finished
    std::size_t backwards = 0;             // finished, at least their input parts
    std::size_t weights = 0;               // finished weight parts, also those of whole backwards
    std::optional<std::size_t> reduce_at;  // position of its R, once there
  };

  Result<void> check_header() const {
    if (schedule_.micro_batches < 1) return bad("no micro-batches");
    if (schedule_.owners.empty()) return bad("no chunks");
    for (const auto& owners : schedule_.owners) {
      if (owners.size() != micros_) return bad("a chunk has not one owner for each micro-batch");
      for (const Rank rank : owners) {
        if (rank.value >= 0 && rank.index() < schedule_.ranks.size()) continue;
        return bad(fmt::format("a chunk on rank {}, which does not exist", rank.value));
      }
    }
    // Each micro-batch takes at least one action per chunk, so a header that promises more than the
    // lists hold is wrong; checked before memory is sized by it.
    std::size_t actions = 0;
    for (const auto& list : schedule_.ranks) actions += list.size();
    if (actions / chunks_ < micros_) return bad("fewer actions than micro-batches need");
    return {};
  }

  void prepare() {
    const std::size_t ranks = schedule_.ranks.size();
    next_.assign(ranks, 0);
    loaded_.assign(micros_, false);
    forwarded_.assign(chunks_ * micros_, false);
    backwarded_.assign(chunks_ * micros_, false);
    to_compute_.assign(ranks, 0);
    shares_.assign(chunks_, {});
    for (std::size_t c = 0; c < chunks_; ++c) prepare_shares(c);
    messages_.assign(kStreamCount * chunks_ * micros_, {});
    tied_at_.assign(ranks, std::nullopt);
    tied_ranks_ = schedule_.end_holders();
    vote_at_.assign(ranks, std::nullopt);
    stepped_.assign(ranks, false);
    posted_.assign(ranks, 0);
    stats_.peak_in_flight.assign(chunks_, 0);
    stats_.peak_queued_weights.assign(chunks_, 0);
    stats_.peak_posted_receives.assign(ranks, 0);
  }

  void prepare_shares(std::size_t c) {
    for (std::size_t m = 0; m < micros_; ++m) {
      const Rank rank = owner(c, m);
      shares_[c][rank].micros.push_back(m);
      to_compute_[rank.index()] += training_ ? 3 : 1;
    }
    if (!training_ || shares_[c].size() == 1) return;
    for (const auto& [rank, share] : shares_[c]) ++to_compute_[rank.index()];
  }

  // Runs the current rank until it must wait. True when it ran at least one action.
  Result<bool> advance() {
    const std::vector<Action>& actions = schedule_.ranks[rank_];
    bool advanced = false;
    for (; next_[rank_] < actions.size(); ++next_[rank_], advanced = true) {
      Outcome outcome = run_action(actions[next_[rank_]]);
      if (!outcome.wrong.empty()) return bad_here(outcome.wrong);
      if (!outcome.wait.empty()) break;
    }
    return advanced;
  }

  Outcome run_action(const Action& action) {
    if (has_chunk(action.kind) && (action.chunk.value < 0 || action.chunk.index() >= chunks_)) {
      return wrong("there is no such chunk");
    }
    if (has_micro(action.kind) && (action.micro.value < 0 || action.micro.index() >= micros_)) {
      return wrong("there is no such micro-batch");
    }
    if (has_chunk(action.kind) && has_micro(action.kind) &&
        owner(action.chunk.index(), action.micro.index()) != here()) {
      return wrong("the micro-batch is another rank's on this chunk");
    }
    if (stepped_[rank_]) return wrong("nothing may follow the update");
    if (passed(vote_at_) && action.kind != ActionKind::kStep) {
      return wrong("only the update may follow the vote");
    }
    const std::size_t c = action.chunk.index();
    const std::size_t m = action.micro.index();
    switch (action.kind) {
      case ActionKind::kLoad:
        return load(m);
      case ActionKind::kSendTargets:
        if (here() != owner(0, m)) return wrong("only the owner on chunk 0 has targets");
        if (!loaded_[m]) return wrong("the micro-batch is not loaded");
        return send(kTargets, chunks_ - 1, m, owner(chunks_ - 1, m));
      case ActionKind::kRecvTargets:
        if (here() != owner(chunks_ - 1, m)) {
          return wrong("only the owner on the last chunk needs targets");
        }
        return post(kTargets, chunks_ - 1, m, owner(0, m));
      case ActionKind::kRecvActivation:
        if (c == 0) return wrong("chunk 0 receives no activation");
        return post(kActivations, c, m, owner(c - 1, m));
      case ActionKind::kForward:
        return forward(c, m);
      case ActionKind::kSendActivation:
        if (c + 1 == chunks_) return wrong("the last chunk sends no activation");
        if (!forwarded_[place(c, m)]) return wrong("its forward did not run");
        return send(kActivations, c + 1, m, owner(c + 1, m));
      case ActionKind::kRecvGradient:
        if (c + 1 == chunks_) return wrong("the last chunk receives no gradient");
        return post(kGradients, c, m, owner(c + 1, m));
      case ActionKind::kBackward:
        return backward(c, m, /*with_weights=*/true);
      case ActionKind::kBackwardInput:
        return backward(c, m, /*with_weights=*/false);
      case ActionKind::kBackwardWeight:
        return backward_weight(c, m);
      case ActionKind::kSendGradient:
        if (c == 0) return wrong("chunk 0 sends no gradient");
        if (!backwarded_[place(c, m)]) return wrong("its backward did not run");
        return send(kGradients, c - 1, m, owner(c - 1, m));
      case ActionKind::kReduce:
        return reduce(c);
      case ActionKind::kReduceTied:
        return reduce_tied();
      case ActionKind::kVote:
        return vote();
      case ActionKind::kStep:
        return step();
    }
    return wrong("unknown action");
  }

  Outcome load(std::size_t m) {
    if (here() != owner(0, m)) return wrong("only the owner on chunk 0 loads");
    if (loaded_[m]) return wrong("loaded twice");
    loaded_[m] = true;
    return {};
  }

  Outcome send(Stream stream, std::size_t chunk, std::size_t m, Rank to) {
    if (here() == to) return wrong("sender and receiver are the same rank");
    Message& message = message_of(stream, chunk, m);
    if (message.sent) return wrong("sent twice");
    message.sent = true;
    return {};
  }

  Outcome post(Stream stream, std::size_t chunk, std::size_t m, Rank from) {
    if (from == here()) return wrong("sender and receiver are the same rank");
    Message& message = message_of(stream, chunk, m);
    if (message.posted) return wrong("posted twice");
    message.posted = true;
    int& peak = stats_.peak_posted_receives[rank_];
    peak = std::max(peak, ++posted_[rank_]);
    return {};
  }

  // What a message from another rank must be before the action that consumes it can run.
  Outcome check_arrival(Stream stream, std::size_t chunk, std::size_t m) {
    const Message& message = message_of(stream, chunk, m);
    if (!message.posted) return wrong(fmt::format("no receive of its {} is posted", name(stream)));
    if (!message.sent) return wait(fmt::format("its {}", name(stream)));
    return {};
  }

  void consume(Stream stream, std::size_t chunk, std::size_t m) {
    message_of(stream, chunk, m).consumed = true;
    --posted_[rank_];
  }

  Outcome forward(std::size_t c, std::size_t m) {
    Share& share = shares_[c][here()];
    if (Outcome outcome = check_turn(share, share.forwards, m); !outcome.wrong.empty()) {
      return outcome;
    }
    const bool receives = c > 0 && owner(c - 1, m) != here();
    const bool targets = c + 1 == chunks_ && owner(0, m) != here();
    if (c == 0 && !loaded_[m]) return wrong("the micro-batch is not loaded");
    if (c > 0 && !receives && !forwarded_[place(c - 1, m)]) {
      return wrong("the chunk before it, on the same rank, has not run");
    }
    // Both arrivals are looked at before either is consumed: a waiting action is tried again.
    for (const auto& [needed, stream] : {std::pair(receives, kActivations), {targets, kTargets}}) {
      if (!needed) continue;
      Outcome outcome = check_arrival(stream, c, m);
      if (!outcome.wait.empty() || !outcome.wrong.empty()) return outcome;
    }
    if (receives) consume(kActivations, c, m);
    if (targets) consume(kTargets, c, m);
    forwarded_[place(c, m)] = true;
    ++share.forwards;
    --to_compute_[rank_];
    if (training_) {
      int& peak = stats_.peak_in_flight[c];
      peak = std::max(peak, static_cast<int>(share.forwards - share.backwards));
    }
    return {};
  }

  Outcome backward(std::size_t c, std::size_t m, bool with_weights) {
    if (!training_) return wrong("a forward schedule has no backward");
    Share& share = shares_[c][here()];
    if (Outcome outcome = check_turn(share, share.backwards, m); !outcome.wrong.empty()) {
      return outcome;
    }
    if (with_weights && share.weights < share.backwards) {
      return wrong(fmt::format("the weight part of micro-batch {} is not done yet",
                               share.micros[share.weights]));
    }
    if (!forwarded_[place(c, m)]) return wrong("its forward did not run");
    if (c + 1 < chunks_) {
      if (owner(c + 1, m) == here()) {
        if (!backwarded_[place(c + 1, m)]) {
          return wrong("the chunk after it, on the same rank, has not run");
        }
      } else {
        Outcome outcome = check_arrival(kGradients, c, m);
        if (!outcome.wait.empty() || !outcome.wrong.empty()) return outcome;
        consume(kGradients, c, m);
      }
    }
    backwarded_[place(c, m)] = true;
    ++share.backwards;
    --to_compute_[rank_];
    if (with_weights) {
      ++share.weights;
      --to_compute_[rank_];
    }
    int& peak = stats_.peak_queued_weights[c];
    peak = std::max(peak, static_cast<int>(share.backwards - share.weights));
    return {};
  }

  Outcome backward_weight(std::size_t c, std::size_t m) {
    if (!training_) return wrong("a forward schedule has no backward");
    Share& share = shares_[c][here()];
    if (Outcome outcome = check_turn(share, share.weights, m); !outcome.wrong.empty()) {
      return outcome;
    }
    if (!backwarded_[place(c, m)]) return wrong("its input part did not run");
    ++share.weights;
    --to_compute_[rank_];
    return {};
  }

  // Each rank takes its micro-batches of a chunk in their order.
  static Outcome check_turn(const Share& share, std::size_t done, std::size_t m) {
    if (done == share.micros.size()) return wrong("it has no further micro-batch of the chunk");
    if (share.micros[done] == m) return {};
    return wrong(fmt::format("micro-batch {} is next", share.micros[done]));
  }

  Outcome reduce(std::size_t c) {
    if (!training_) return wrong("a forward schedule has no gradients");
    const auto here_at = shares_[c].find(here());
    if (here_at == shares_[c].end()) return wrong("the chunk is not on this rank");
    if (shares_[c].size() == 1) return wrong("the chunk is on one rank");
    Share& share = here_at->second;
    if (share.weights != share.micros.size()) {
      return wrong("its rank has not computed all of the chunk");
    }
    if (!share.reduce_at) {
      share.reduce_at = next_[rank_];
      --to_compute_[rank_];
    }
    if (*share.reduce_at != next_[rank_]) return wrong("summed twice");
    for (const auto& [rank, other] : shares_[c]) {
      if (!other.reduce_at) return wait(fmt::format("rank {}", rank.value));
    }
    return {};
  }

  Outcome reduce_tied() {
    if (tied_ranks_.size() < 2) return wrong("tied parameters are on one rank");
    if (std::ranges::find(tied_ranks_, here()) == tied_ranks_.end()) {
      return wrong("this rank holds no tied parameter");
    }
    for (const std::size_t end : {std::size_t{0}, shares_.size() - 1}) {
      const auto share = shares_[end].find(here());
      if (share == shares_[end].end()) continue;
      if (share->second.weights != share->second.micros.size()) {
        return wrong("its rank has not computed all of the first or the last chunk");
      }
    }
    if (!arrive(tied_at_)) return wrong("summed twice");
    for (const Rank rank : tied_ranks_) {
      if (!tied_at_[rank.index()]) return wait(fmt::format("rank {}", rank.value));
    }
    return {};
  }

  Outcome vote() {
    if (to_compute_[rank_] != 0) return wrong("its rank has not computed everything");
    if (!arrive(vote_at_)) return wrong("voted twice");
    while (voted_ < vote_at_.size() && vote_at_[voted_]) ++voted_;
    if (voted_ < vote_at_.size()) return wait(fmt::format("the vote of rank {}", voted_));
    return {};
  }

  Outcome step() {
    if (!training_) return wrong("a forward schedule has no update");
    if (!vote_at_[rank_]) return wrong("before the vote");
    if (stepped_[rank_]) return wrong("updated twice");
    stepped_[rank_] = true;
    return {};
  }

  // Notes that this rank is at a collective. False when it already passed one.
  bool arrive(std::vector<std::optional<std::size_t>>& at) const {
    std::optional<std::size_t>& mine = at[rank_];
    if (!mine) mine = next_[rank_];
    return *mine == next_[rank_];
  }

  bool passed(const std::vector<std::optional<std::size_t>>& at) const {
    return at[rank_] && *at[rank_] != next_[rank_];
  }

  // What only the end can tell.
  Result<void> check_end() {
    for (rank_ = 0; rank_ < schedule_.ranks.size(); ++rank_) {
      if (next_[rank_] == schedule_.ranks[rank_].size()) continue;
      const Outcome outcome = run_action(schedule_.ranks[rank_][next_[rank_]]);
      return bad_here("deadlock: it waits for " + outcome.wait + ", which never comes");
    }
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      if (!vote_at_[r]) return bad(fmt::format("rank {} does not vote", r));
      if (training_ && !stepped_[r]) return bad(fmt::format("rank {} does not update", r));
    }
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const Message& message = messages_[i];
      if (message.sent == message.consumed && message.posted == message.consumed) continue;
      return bad(fmt::format("the {} for chunk {}, micro-batch {} are {} and never consumed",
                             name(static_cast<Stream>(i / (chunks_ * micros_))),
                             i / micros_ % chunks_, i % micros_, message.sent ? "sent" : "posted"));
    }
    return {};
  }

  Message& message_of(Stream stream, std::size_t chunk, std::size_t m) {
    return messages_[(stream * chunks_ + chunk) * micros_ + m];
  }

  Rank here() const { return {static_cast<std::int32_t>(rank_)}; }

  Rank owner(std::size_t chunk, std::size_t m) const { return schedule_.owners[chunk][m]; }

  std::size_t place(std::size_t chunk, std::size_t m) const { return chunk * micros_ + m; }

  static std::string_view name(Stream stream) {
    constexpr std::array<std::string_view, kStreamCount> kNames = {"activations", "gradients",
                                                                   "targets"};
    return kNames[stream];
  }

  static Outcome wait(std::string what) { return {std::move(what), ""}; }

  static Outcome wrong(std::string why) { return {"", std::move(why)}; }

  Error bad(const std::string& why) const {
    return {ErrorCode::kInternal, fmt::format("schedule '{}' is wrong: {}", schedule_.name, why),
            to_text(schedule_), ""};
  }

  Error bad_here(const std::string& why) const {
    return bad(fmt::format("rank {}, action {} ({}): {}", rank_, next_[rank_],
                           to_text(schedule_.ranks[rank_][next_[rank_]]), why));
  }

  const Schedule& schedule_;
  std::size_t chunks_;
  std::size_t micros_;
  bool training_;
  std::size_t rank_ = 0;  // being advanced

  std::vector<std::size_t> next_;                    // [Rank] position in its actions
  std::vector<bool> loaded_;                         // [MicroId]
  std::vector<bool> forwarded_;                      // [ChunkId][MicroId]
  std::vector<bool> backwarded_;                     // [ChunkId][MicroId]
  std::vector<std::map<Rank, Share>> shares_;        // [ChunkId]
  std::vector<std::size_t> to_compute_;              // [Rank] its F, R and halves of B to come
  std::vector<Message> messages_;                    // [Stream][receiving ChunkId][MicroId]
  std::vector<std::optional<std::size_t>> tied_at_;  // [Rank] position of its T, once there
  std::vector<Rank> tied_ranks_;                     // who may have one
  std::vector<std::optional<std::size_t>> vote_at_;  // [Rank] position of its V, once there
  std::size_t voted_ = 0;                            // the ranks below have come to their V
  std::vector<bool> stepped_;                        // [Rank]
  std::vector<int> posted_;                          // [Rank] receives posted and not consumed
  ScheduleStats stats_;
};

}  // namespace

Result<ScheduleStats> validate_schedule(const Schedule& schedule) {
  return Interpreter(schedule).run();
}

}  // namespace motley

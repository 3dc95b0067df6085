// Random valid orders of a step's actions: recorded from a run in which at every moment any action
// permitted by its meaning may happen next. Independent of the schedule generators and of the
// rules, so it can test both.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/schedule/action.h"

namespace motley {

class RandomOrder {
 public:
  // tied: several ranks hold chunk 0 or the last one and all-reduce a tied parameter.
  RandomOrder(std::vector<std::vector<Rank>> owners,
              int rank_count,
              bool training,
              bool tied,
              std::uint64_t seed)
      : owners_(std::move(owners)), training_(training), tied_(tied), random_(seed) {
    schedule_.name = training ? "1f1b" : "forward";
    schedule_.micro_batches = micros();
    schedule_.owners = owners_;
    schedule_.ranks.resize(static_cast<std::size_t>(rank_count));
    // In some orders receives are posted early or sends are late.
    for (int kind = 0; kind <= static_cast<int>(ActionKind::kStep); ++kind) {
      constexpr std::array kOdds = {1, 5, 25};
      odds_[static_cast<ActionKind>(kind)] = kOdds[random_() % kOdds.size()];
    }
  }

  Schedule draw() {
    std::vector<Action> possible = possible_now();
    while (!possible.empty()) {
      run(pick(possible));
      possible = possible_now();
    }
    for (std::vector<Action>& actions : schedule_.ranks) {
      actions.push_back({ActionKind::kVote, {}, {}});
      if (training_) actions.push_back({ActionKind::kStep, {}, {}});
    }
    return std::move(schedule_);
  }

 private:
  int chunks() const { return static_cast<int>(owners_.size()); }

  int micros() const { return static_cast<int>(owners_.front().size()); }

  Rank owner(int c, int m) const {
    return owners_[static_cast<std::size_t>(c)][static_cast<std::size_t>(m)];
  }

  bool did(ActionKind kind, int c, int m) const { return done_.contains({kind, {c}, {m}}); }

  // Whether the output of chunk `from` is available to chunk `to`: on another rank it was sent and
  // its receive is posted.
  bool is_there(bool made, int from, int to, int m, const Action& send, const Action& post) const {
    return owner(from, m) == owner(to, m) ? made : done_.contains(send) && done_.contains(post);
  }

  // Whether the same was done for all earlier micro-batches of the chunk on this rank.
  template <class Done>
  bool is_turn(int c, int m, Done done) const {
    for (int before = 0; before < m; ++before) {
      if (owner(c, before) == owner(c, m) && !done(c, before)) return false;
    }
    return true;
  }

  bool input_done(int c, int m) const {
    return did(ActionKind::kBackward, c, m) || did(ActionKind::kBackwardInput, c, m);
  }

  bool weights_done(int c, int m) const {
    return did(ActionKind::kBackward, c, m) || did(ActionKind::kBackwardWeight, c, m);
  }

  bool may_forward(int c, int m) const {
    const int last = chunks() - 1;
    const auto forwarded = [this](int at, int micro) {
      return did(ActionKind::kForward, at, micro);
    };
    if (forwarded(c, m) || !is_turn(c, m, forwarded)) return false;
    if (c == 0 && !did(ActionKind::kLoad, 0, m)) return false;
    if (c > 0 &&
        !is_there(forwarded(c - 1, m), c - 1, c, m, {ActionKind::kSendActivation, {c - 1}, {m}},
                  {ActionKind::kRecvActivation, {c}, {m}})) {
      return false;
    }
    return c < last ||
           is_there(did(ActionKind::kLoad, 0, m), 0, last, m, {ActionKind::kSendTargets, {}, {m}},
                    {ActionKind::kRecvTargets, {}, {m}});
  }

  bool may_backward(int c, int m) const {
    const auto done = [this](int at, int micro) { return input_done(at, micro); };
    if (!did(ActionKind::kForward, c, m) || input_done(c, m) || !is_turn(c, m, done)) return false;
    return c == chunks() - 1 ||
           is_there(input_done(c + 1, m), c + 1, c, m, {ActionKind::kSendGradient, {c + 1}, {m}},
                    {ActionKind::kRecvGradient, {c}, {m}});
  }

  void add_if(bool possible, std::vector<Action>& all, const Action& action) const {
    if (possible && !done_.contains(action)) all.push_back(action);
  }

  std::vector<Action> possible_now() const {
    std::vector<Action> all;
    const int last = chunks() - 1;
    for (int m = 0; m < micros(); ++m) {
      const bool far = owner(0, m) != owner(last, m);
      add_if(true, all, {ActionKind::kLoad, {}, {m}});
      add_if(far && did(ActionKind::kLoad, 0, m), all, {ActionKind::kSendTargets, {}, {m}});
      add_if(far, all, {ActionKind::kRecvTargets, {}, {m}});
      for (int c = 0; c <= last; ++c) add_of_chunk(all, c, m);
    }
    if (!training_) return all;
    for (int c = 0; c <= last; ++c) {
      const bool summed = distinct_ranks(owners_[static_cast<std::size_t>(c)]).size() > 1;
      add_if(summed && all_done(c, /*weights=*/true), all, {ActionKind::kReduce, {c}, {}});
    }
    add_if(tied_ && all_done(0, /*weights=*/false) && all_done(last, /*weights=*/true), all,
           {ActionKind::kReduceTied, {}, {}});
    return all;
  }

  bool all_done(int c, bool weights) const {
    for (int m = 0; m < micros(); ++m) {
      if (!(weights ? weights_done(c, m) : input_done(c, m))) return false;
    }
    return true;
  }

  void add_of_chunk(std::vector<Action>& all, int c, int m) const {
    const int last = chunks() - 1;
    const bool from_before = c > 0 && owner(c - 1, m) != owner(c, m);
    const bool from_behind = c < last && owner(c + 1, m) != owner(c, m);
    add_if(from_before, all, {ActionKind::kRecvActivation, {c}, {m}});
    add_if(may_forward(c, m), all, {ActionKind::kForward, {c}, {m}});
    add_if(from_behind && did(ActionKind::kForward, c, m), all,
           {ActionKind::kSendActivation, {c}, {m}});
    if (!training_) return;
    const auto weighed = [this](int at, int micro) { return weights_done(at, micro); };
    add_if(from_behind, all, {ActionKind::kRecvGradient, {c}, {m}});
    if (may_backward(c, m)) {
      all.push_back({ActionKind::kBackwardInput, {c}, {m}});
      if (is_turn(c, m, weighed)) all.push_back({ActionKind::kBackward, {c}, {m}});
    }
    add_if(did(ActionKind::kBackwardInput, c, m) && is_turn(c, m, weighed), all,
           {ActionKind::kBackwardWeight, {c}, {m}});
    add_if(from_before && input_done(c, m), all, {ActionKind::kSendGradient, {c}, {m}});
  }

  Action pick(const std::vector<Action>& possible) {
    std::vector<int> odds;
    for (const Action& action : possible) odds.push_back(odds_.at(action.kind));
    return possible[std::discrete_distribution<std::size_t>(odds.begin(), odds.end())(random_)];
  }

  // An all-reduce happens on all its ranks at the same moment.
  void run(const Action& action) {
    done_.insert(action);
    if (action.kind == ActionKind::kReduce)
      return add(schedule_.group_members(action.chunk), action);
    if (action.kind == ActionKind::kReduceTied) return add(schedule_.end_ranks(), action);
    int chunk = action.chunk.value;
    if (action.kind == ActionKind::kRecvTargets) chunk = chunks() - 1;
    add({owner(chunk, action.micro.value)}, action);
  }

  void add(const std::vector<Rank>& ranks, const Action& action) {
    for (const Rank rank : ranks) schedule_.ranks[rank.index()].push_back(action);
  }

  struct Before {
    bool operator()(const Action& a, const Action& b) const {
      return std::tie(a.kind, a.chunk, a.micro) < std::tie(b.kind, b.chunk, b.micro);
    }
  };

  const std::vector<std::vector<Rank>> owners_;
  const bool training_;
  const bool tied_;
  std::mt19937_64 random_;
  std::map<ActionKind, int> odds_;
  std::set<Action, Before> done_;
  Schedule schedule_;
};

}  // namespace motley

// Discrete events: the rank whose time comes first acts first, so that messages enter each link in
// the order of their times. Each action takes at most a few events: O(actions x log ranks).
#include "partitioner/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

// What a message carries; with chunk and micro-batch it names one message of the step.
enum class Cargo { kActivation, kGradient, kTargets, kTied, kVote, kVerdict };

// Token count, squared gradient norm, finite flag and a frame around them.
constexpr double kVoteBytes = 64;

using MessageKey = std::tuple<Cargo, int, int>;  // cargo, receiving chunk or rank, micro-batch

class Simulation {
 public:
  Simulation(const Schedule& schedule,
             const Plan& plan,
             const CostModel& cost,
             const std::vector<int>& rank_slots)
      : schedule_(schedule),
        plan_(plan),
        cost_(cost),
        rank_slots_(rank_slots),
        ranks_(schedule.ranks.size()) {
    result_.compute_s.assign(ranks_.size(), 0);
    result_.wait_s.assign(ranks_.size(), 0);
    for (const ChunkPlan& chunk : plan.chunks) price_chunk(chunk);
    number_machines();
  }

  Result<SimulatedStep> run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) events_.push({0, r});
    while (!events_.empty()) {
      const auto [now_s, rank] = events_.top();
      events_.pop();
      act(rank, now_s);
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].next == schedule_.ranks[r].size()) continue;
      return Error{ErrorCode::kInternal,
                   fmt::format("the schedule deadlocks at {} on rank {}",
                               to_text(schedule_.ranks[r][ranks_[r].next]), r),
                   to_text(schedule_), ""};
    }
    std::stable_sort(result_.spans.begin(), result_.spans.end(),
                     [](const TraceSpan& a, const TraceSpan& b) { return a.start_s < b.start_s; });
    return std::move(result_);
  }

 private:
  struct ChunkCost {
    double forward_s = 0;
    double backward_s = 0;
    double optimizer_s = 0;
    double boundary_bytes = 0;  // after it
  };

  struct RankState {
    std::size_t next = 0;        // action
    bool entered = false;        // the action's own messages are on their way
    double waiting_since_s = 0;  // when it came to the action
    double arrival_s = 0;        // latest of the messages that the action consumed so far
    std::size_t consumed = 0;    // messages of the action that have been sent
  };

  using Event = std::pair<double, std::size_t>;  // time, rank; ties go to the lower rank

  void price_chunk(const ChunkPlan& chunk) {
    const int slot = slot_of(chunk.replicas.front().rank);
    const int last = chunk.first_layer + chunk.layer_count;
    chunks_.push_back(
        {cost_.forward_s(slot, chunk.first_layer, last, plan_.micro_batch),
         cost_.backward_s(slot, chunk.first_layer, last, plan_.micro_batch, chunk.recompute),
         cost_.optimizer_s(slot, chunk.first_layer, last),
         cost_.wire_bytes(slot, cost_.boundary_floats(last - 1, plan_.micro_batch), chunk.codec)});
  }

  void number_machines() {
    std::map<std::string, std::size_t> numbers;
    for (const int slot : rank_slots_) {
      const std::string& name = cost_.slots()[static_cast<std::size_t>(slot)].machine;
      machines_.push_back(numbers.try_emplace(name, numbers.size()).first->second);
    }
    machine_count_ = numbers.size();
    link_free_s_.assign(machine_count_ * machine_count_, 0);
  }

  int slot_of(Rank rank) const { return rank_slots_[rank.index()]; }

  Rank rank_of(int chunk) const { return schedule_.owner(ChunkId{chunk}, MicroId{0}); }

  int last_chunk() const { return schedule_.chunk_count() - 1; }

  // Runs the rank's next action, or parks the rank until a message that it needs is sent.
  void act(std::size_t r, double now_s) {
    RankState& state = ranks_[r];
    if (state.next == schedule_.ranks[r].size()) return;
    const Action& action = schedule_.ranks[r][state.next];
    if (!state.entered) {
      state.entered = true;
      state.waiting_since_s = now_s;
      state.arrival_s = now_s;
      send_first(action, r, now_s);
    }
    const std::vector<MessageKey> needed = messages_needed(action, r);
    for (; state.consumed < needed.size(); ++state.consumed) {
      const auto sent = arrivals_s_.find(needed[state.consumed]);
      if (sent == arrivals_s_.end()) {
        parked_[needed[state.consumed]] = r;
        return;
      }
      state.arrival_s = std::max(state.arrival_s, sent->second);
      arrivals_s_.erase(sent);
    }
    finish(action, r);
  }

  void finish(const Action& action, std::size_t r) {
    RankState& state = ranks_[r];
    const double start_s = state.arrival_s;
    if (start_s > state.waiting_since_s) {
      result_.wait_s[r] += start_s - state.waiting_since_s;
      add_span(r, "wait", to_text(action), state.waiting_since_s, start_s);
    }
    const double end_s = start_s + compute_s(action, r);
    if (end_s > start_s) {
      result_.compute_s[r] += end_s - start_s;
      add_span(r, "compute", to_text(action), start_s, end_s);
    }
    ++state.next;
    state.entered = false;
    state.consumed = 0;
    result_.step_s = std::max(result_.step_s, end_s);
    if (action.kind == ActionKind::kVote && r == 0) send_verdicts(action, end_s);
    events_.push({end_s, r});
  }

  double compute_s(const Action& action, std::size_t r) const {
    if (action.kind == ActionKind::kForward) return chunks_[action.chunk.index()].forward_s;
    if (action.kind == ActionKind::kBackward) return chunks_[action.chunk.index()].backward_s;
    if (action.kind != ActionKind::kStep) return 0;
    double sum_s = 0;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      if (schedule_.owners[c].front().index() == r) sum_s += chunks_[c].optimizer_s;
    }
    return sum_s;
  }

  // Messages that an action sends as soon as its rank comes to it.
  void send_first(const Action& action, std::size_t r, double now_s) {
    const int c = action.chunk.value;
    const int m = action.micro.value;
    switch (action.kind) {
      case ActionKind::kSendTargets:
        return send({Cargo::kTargets, last_chunk(), m}, r, rank_of(last_chunk()),
                    static_cast<double>(cost_.target_bytes(plan_.micro_batch)), action, now_s);
      case ActionKind::kSendActivation:
        return send({Cargo::kActivation, c + 1, m}, r, rank_of(c + 1),
                    chunks_[action.chunk.index()].boundary_bytes, action, now_s);
      case ActionKind::kSendGradient:
        return send({Cargo::kGradient, c - 1, m}, r, rank_of(c - 1),
                    chunks_[action.chunk.index() - 1].boundary_bytes, action, now_s);
      case ActionKind::kReduceTied: {
        const Rank other = tied_partner(r);
        return send({Cargo::kTied, other.value, 0}, r, other,
                    static_cast<double>(cost_.tied_bytes()), action, now_s);
      }
      case ActionKind::kVote:
        if (r == 0) return;
        return send({Cargo::kVote, static_cast<int>(r), 0}, r, {0}, kVoteBytes, action, now_s);
      default:
        return;
    }
  }

  // Rank 0 answers the votes once it has them all.
  void send_verdicts(const Action& vote, double now_s) {
    for (std::size_t to = 1; to < ranks_.size(); ++to) {
      const Rank rank{static_cast<std::int32_t>(to)};
      send({Cargo::kVerdict, rank.value, 0}, 0, rank, kVoteBytes, vote, now_s);
    }
  }

  // What has to arrive before the action can run.
  std::vector<MessageKey> messages_needed(const Action& action, std::size_t r) const {
    const int c = action.chunk.value;
    const int m = action.micro.value;
    const auto remote = [&](int chunk) { return rank_of(chunk).index() != r; };
    std::vector<MessageKey> needed;
    switch (action.kind) {
      case ActionKind::kForward:
        if (c > 0 && remote(c - 1)) needed.emplace_back(Cargo::kActivation, c, m);
        if (c == last_chunk() && remote(0)) needed.emplace_back(Cargo::kTargets, c, m);
        break;
      case ActionKind::kBackward:
        if (c < last_chunk() && remote(c + 1)) needed.emplace_back(Cargo::kGradient, c, m);
        break;
      case ActionKind::kReduceTied:
        needed.emplace_back(Cargo::kTied, static_cast<int>(r), 0);
        break;
      case ActionKind::kVote:
        if (r != 0) needed.emplace_back(Cargo::kVerdict, static_cast<int>(r), 0);
        for (std::size_t from = 1; r == 0 && from < ranks_.size(); ++from) {
          needed.emplace_back(Cargo::kVote, static_cast<int>(from), 0);
        }
        break;
      default:
        break;
    }
    return needed;
  }

  Rank tied_partner(std::size_t r) const {
    return rank_of(0).index() == r ? rank_of(last_chunk()) : rank_of(0);
  }

  void send(const MessageKey& key,
            std::size_t from,
            Rank to,
            double bytes,
            const Action& action,
            double now_s) {
    const LinkSpeed speed = cost_.link(rank_slots_[from], slot_of(to));
    double& free_s = link_free_s_[machines_[from] * machine_count_ + machines_[to.index()]];
    const double start_s = std::max(now_s, free_s);
    free_s = start_s + bytes / speed.bandwidth_bytes_per_s;
    arrivals_s_[key] = free_s + speed.latency_s;
    add_span(from, fmt::format("link to {}", to.value), to_text(action), start_s, free_s);
    const auto waiting = parked_.find(key);
    if (waiting == parked_.end()) return;
    events_.push({now_s, waiting->second});
    parked_.erase(waiting);
  }

  void add_span(std::size_t r, std::string lane, std::string name, double start_s, double end_s) {
    result_.spans.push_back({{static_cast<std::int32_t>(r)},
                             std::move(lane),
                             std::move(name),
                             start_s,
                             end_s - start_s,
                             0});
  }

  const Schedule& schedule_;
  const Plan& plan_;
  const CostModel& cost_;
  const std::vector<int>& rank_slots_;

  std::vector<ChunkCost> chunks_;      // [ChunkId]
  std::vector<std::size_t> machines_;  // [Rank] number of its machine
  std::size_t machine_count_ = 0;
  // A direction between two machines carries one message at a time, in the order of sending.
  std::vector<double> link_free_s_;           // [from machine * machines + to machine]
  std::vector<RankState> ranks_;              // [Rank]
  std::map<MessageKey, double> arrivals_s_;   // sent, not yet consumed
  std::map<MessageKey, std::size_t> parked_;  // the rank that waits for it
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  SimulatedStep result_;
};

}  // namespace

Result<std::vector<int>> slots_of_ranks(const Plan& plan, const CostModel& cost) {
  std::vector<bool> used(cost.slots().size(), false);
  std::vector<int> slots;
  for (const RankPlan& rank : plan.ranks) {
    std::size_t s = 0;
    while (s < used.size() && (used[s] || cost.slots()[s].machine != rank.machine ||
                               cost.slots()[s].device != rank.device)) {
      ++s;
    }
    if (s == used.size()) {
      return Error{ErrorCode::kConfig,
                   fmt::format("the plan needs {}/{}, which the cluster does not have",
                               rank.machine, rank.device),
                   "the plan was made for other machines", "plan again for this cluster"};
    }
    used[s] = true;
    slots.push_back(static_cast<int>(s));
  }
  return slots;
}

Result<SimulatedStep> simulate_step(const Schedule& schedule,
                                    const Plan& plan,
                                    const ModelSpec& model,
                                    const CostModel& cost,
                                    const std::vector<int>& rank_slots) {
  MOTLEY_CHECK(static_cast<int>(model.layers.size()) == cost.layer_count(),
               "{} layers, costs of {}", model.layers.size(), cost.layer_count());
  MOTLEY_CHECK(
      rank_slots.size() == schedule.ranks.size() && schedule.owners.size() == plan.chunks.size(),
      "{} slots for {} ranks, {} chunks for {}", rank_slots.size(), schedule.ranks.size(),
      plan.chunks.size(), schedule.owners.size());
  return Simulation(schedule, plan, cost, rank_slots).run();
}

}  // namespace motley

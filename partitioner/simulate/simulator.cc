// A discrete-event simulation. Only the entry of messages into links must follow the order of time,
// so a rank runs independently up to its next send; events are these sends and those of the links.
// O(actions + messages x log ranks), plus one event for each preemption of an all-reduce message.
#include "partitioner/simulate/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "base/check.h"
#include "partitioner/simulate/shared_links.h"
#include "partitioner/simulate/step_program.h"
#include "plan/schedule_facts.h"

namespace motley {
namespace {

class Simulation {
 public:
  Simulation(const Schedule& schedule,
             const StepProgram& program,
             const CostModel& cost,
             const std::vector<int>& rank_slots,
             bool with_spans)
      : schedule_(schedule),
        program_(program),
        links_(cost, rank_slots, program.messages),
        ranks_(make_ranks(cost, rank_slots)),
        messages_(program.messages.size()),
        with_spans_(with_spans) {
    for (auto* times : {&result_.compute_s, &result_.codec_s, &result_.wait_s,
                        &result_.wait_sender_s, &result_.wait_link_s}) {
      times->assign(ranks_.size(), 0);
    }
  }

  Result<SimulatedStep> run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].next = program_.first_op[r];
      advance(r);
    }
    while (true) {
      if (!sends_.empty() && sends_.top().first <= links_.next_s()) {
        const auto [now_s, r] = sends_.top();
        sends_.pop();
        send(r, now_s);
        advance(r);
      } else if (links_.next_s() < std::numeric_limits<double>::infinity()) {
        if (const auto number = links_.run_next()) reach(*number);
      } else {
        break;
      }
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].next < program_.first_op[r + 1]) return deadlock(r);
      result_.step_s = std::max(result_.step_s, ranks_[r].now_s);
      result_.wait_s[r] = result_.wait_sender_s[r] + result_.wait_link_s[r];
    }
    std::stable_sort(result_.spans.begin(), result_.spans.end(),
                     [](const TraceSpan& a, const TraceSpan& b) { return a.start_s < b.start_s; });
    return std::move(result_);
  }

 private:
  static constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

  struct RankState {
    std::size_t next = 0;  // operation
    double now_s = 0;
    // With asynchronous codecs: when they are done with their queued work.
    bool overlaps_codecs = false;
    double encoder_free_s = 0;
    double decoder_free_s = 0;
  };

  static std::vector<RankState> make_ranks(const CostModel& cost,
                                           const std::vector<int>& rank_slots) {
    std::vector<RankState> ranks(rank_slots.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r].overlaps_codecs = cost.overlaps_codecs(rank_slots[r]);
    }
    return ranks;
  }

  struct MessageState {
    double sent_s = 0;
    std::size_t send = 0;  // the operation
    std::uint32_t waiting = kNobody;
    bool arrives = false;  // whether its arrival time is known
  };

  // A time and the rank that sends then. Ties go to the lower rank.
  using Send = std::pair<double, std::size_t>;

  // Runs the rank up to its next send, or until it needs a message with an unknown arrival time.
  void advance(std::size_t r) {
    RankState& state = ranks_[r];
    for (; state.next < program_.first_op[r + 1]; ++state.next) {
      const StepOp& op = program_.ops[state.next];
      if (op.kind == OpKind::kCompute) {
        spend(r, op, result_.compute_s, "compute");
        continue;
      }
      if (op.kind == OpKind::kSend) {
        sends_.emplace(encode(r, op), r);
        return;
      }
      MessageState& message = messages_[op.message];
      if (!message.arrives) {
        message.waiting = static_cast<std::uint32_t>(r);
        return;
      }
      decode(r, op);
    }
  }

  // Returns when the message leaves. The rank continues after the event, from its own time.
  double encode(std::size_t r, const StepOp& op) {
    RankState& state = ranks_[r];
    if (!state.overlaps_codecs) {
      spend(r, op, result_.codec_s, "codec");
      return state.now_s;
    }
    state.encoder_free_s =
        run_overlapped(r, op, "encode", std::max(state.now_s, state.encoder_free_s));
    return state.encoder_free_s;
  }

  void decode(std::size_t r, const StepOp& op) {
    RankState& state = ranks_[r];
    const double arrival_s = links_.occupation(op.message).arrival_s;
    if (!state.overlaps_codecs) {
      wait(r, op, arrival_s);
      return spend(r, op, result_.codec_s, "codec");
    }
    state.decoder_free_s =
        run_overlapped(r, op, "decode", std::max(arrival_s, state.decoder_free_s));
    wait(r, op, state.decoder_free_s);
  }

  // Returns its end time.
  double run_overlapped(std::size_t r, const StepOp& op, const char* lane, double start_s) {
    if (with_spans_) add_span(r, op, lane, start_s, start_s + op.seconds);
    return start_s + op.seconds;
  }

  void spend(std::size_t r, const StepOp& op, std::vector<double>& account, const char* lane) {
    double& now_s = ranks_[r].now_s;
    account[r] += op.seconds;
    if (with_spans_) add_span(r, op, lane, now_s, now_s + op.seconds);
    now_s += op.seconds;
  }

  // Waits until the message can be used.
  void wait(std::size_t r, const StepOp& op, double ready_s) {
    double& now_s = ranks_[r].now_s;
    if (ready_s <= now_s) return;
    const double sent_s = std::max(now_s, messages_[op.message].sent_s);
    result_.wait_sender_s[r] += sent_s - now_s;
    result_.wait_link_s[r] += ready_s - sent_s;
    if (with_spans_) add_span(r, op, "wait", now_s, ready_s);
    now_s = ready_s;
  }

  void send(std::size_t r, double now_s) {
    const std::size_t number = program_.ops[ranks_[r].next].message;
    messages_[number].sent_s = now_s;
    messages_[number].send = ranks_[r].next++;
    links_.send(number, now_s);
  }

  void reach(std::size_t number) {
    MessageState& message = messages_[number];
    message.arrives = true;
    if (with_spans_) {
      const StepMessage& what = program_.messages[number];
      const SharedLinks::LinkOccupation& occupation = links_.occupation(number);
      add_span(what.from, program_.ops[message.send], fmt::format("link to {}", what.to),
               occupation.start_s, occupation.end_s);
    }
    if (message.waiting != kNobody) advance(std::exchange(message.waiting, kNobody));
  }

  void add_span(std::size_t r, const StepOp& op, std::string lane, double start_s, double end_s) {
    if (end_s <= start_s) return;
    result_.spans.push_back({{static_cast<std::int32_t>(r)},
                             std::move(lane),
                             to_text(schedule_.ranks[r][op.action]),
                             start_s,
                             end_s - start_s,
                             0});
  }

  Error deadlock(std::size_t r) const {
    const Action& action = schedule_.ranks[r][program_.ops[ranks_[r].next].action];
    return {ErrorCode::kInternal,
            fmt::format("the schedule deadlocks at {} on rank {}", to_text(action), r),
            to_text(schedule_), ""};
  }

  const Schedule& schedule_;
  const StepProgram& program_;
  SharedLinks links_;
  std::vector<RankState> ranks_;        // [Rank]
  std::vector<MessageState> messages_;  // [number of the message]
  std::priority_queue<Send, std::vector<Send>, std::greater<>> sends_;
  const bool with_spans_;
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
      const auto is_there = [&](const auto& each) {
        return each.machine == rank.machine && each.device == rank.device;
      };
      const auto needed = std::ranges::count_if(plan.ranks, is_there);
      if (const auto there = std::ranges::count_if(cost.slots(), is_there); there > 0) {
        return Error{ErrorCode::kConfig,
                     fmt::format("the plan needs {}/{} {} times, which the cluster has {} time{}",
                                 rank.machine, rank.device, needed, there, there == 1 ? "" : "s"),
                     "each of its stages there is a separate process",
                     fmt::format("list the device {} times in the cluster file; without one, "
                                 "--stages {} uses this machine as often",
                                 needed, needed)};
      }
      return Error{
          ErrorCode::kConfig,
          fmt::format("the plan needs {}/{}, which the cluster lacks", rank.machine, rank.device),
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
                                    const std::vector<int>& rank_slots,
                                    const SimulateOptions& options) {
  MOTLEY_CHECK(static_cast<int>(model.layers.size()) == cost.layer_count(),
               "{} layers, costs of {}", model.layers.size(), cost.layer_count());
  MOTLEY_CHECK(
      rank_slots.size() == schedule.ranks.size() && schedule.owners.size() == plan.chunks.size(),
      "{} slots for {} ranks, {} chunks for {}", rank_slots.size(), schedule.ranks.size(),
      plan.chunks.size(), schedule.owners.size());
  for (const ChunkPlan& chunk : plan.chunks) MOTLEY_TRY(cost.check_codec(chunk.codec));
  const ScheduleFacts* facts = find_schedule(plan.schedule);
  if (facts != nullptr && facts->splits_backward) MOTLEY_TRY(cost.check_split());
  const auto seed = options.draw_times ? std::optional(options.seed) : std::nullopt;
  const StepProgram program = compile_step(schedule, plan, cost, rank_slots, seed);
  return Simulation(schedule, program, cost, rank_slots, options.spans).run();
}

}  // namespace motley

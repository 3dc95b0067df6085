#include "partitioner/simulate/step_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/philox.h"
#include "partitioner/cost/step_prices.h"
#include "partitioner/simulate/allreduce_messages.h"
#include "pipeline/schedule/action_rules.h"

namespace motley {
namespace {

// A sample of the distribution; each action has its own draw, independent of the others.
double drawn_s(const PricedTime& time, std::uint64_t seed, std::size_t rank, std::size_t action) {
  constexpr double kLeastShareOfMedian = 0.2;
  constexpr double kUnit = 0x1.0p-32;
  const PhiloxBlock bits = philox4x32(seed, rank, action);
  // Box-Muller transform; the first number is in (0, 1], so that its logarithm is finite.
  const double radius = std::sqrt(-2 * std::log((bits[0] + 1.0) * kUnit));
  const double normal = radius * std::cos(2 * std::numbers::pi * (bits[1] * kUnit));
  return std::max(kLeastShareOfMedian * time.median_s, time.median_s + time.sigma_s * normal);
}

class Compiler {
 public:
  Compiler(const Schedule& schedule,
           const Plan& plan,
           const ModelSizes& model,
           const StepPrices& prices,
           std::optional<std::uint64_t> draw_seed)
      : schedule_(schedule),
        plan_(plan),
        rules_(schedule.owners),
        prices_(prices),
        draw_seed_(draw_seed),
        chunks_(schedule.owners.size()),
        micros_(static_cast<std::size_t>(schedule.micro_batches)),
        ranks_(schedule.ranks.size()),
        optimizer_s_(ranks_, 0) {
    for (std::size_t c = 0; c < chunks_; ++c) {
      for (const Replica& replica : plan.chunks[c].replicas) {
        optimizer_s_[replica.rank.index()] += prices.of(c, replica.rank.index()).optimizer_s;
      }
    }
    number_messages(model);
  }

  StepProgram compile() {
    std::size_t actions = 0;
    for (const std::vector<Action>& list : schedule_.ranks) actions += list.size();
    program_.ops.reserve(actions);  // an estimate: posted receives need none, forwards several
    for (rank_ = 0; rank_ < ranks_; ++rank_) {
      program_.first_op.push_back(program_.ops.size());
      find_last_changes();
      for (action_ = 0; action_ < schedule_.ranks[rank_].size(); ++action_) {
        add(schedule_.ranks[rank_][action_]);
        for (std::size_t s = 0; s < allreduces_.size(); ++s) {
          if (last_sends_[s] == action_) send_early(allreduces_[s], allreduces_[s].pieces() - 1);
        }
      }
    }
    program_.first_op.push_back(program_.ops.size());
    return std::move(program_);
  }

 private:
  // Message numbers: activations and gradients by receiving chunk and micro-batch, then targets,
  // votes, rank 0's answers by rank, then those of each R and of T.
  void number_messages(const ModelSizes& model) {
    first_gradient_ = chunks_ * micros_;
    first_target_ = 2 * first_gradient_;
    first_vote_ = first_target_ + micros_;
    first_check_result_ = first_vote_ + ranks_;
    std::size_t next = first_check_result_ + ranks_;
    const auto add_allreduce = [&](const std::vector<ReducePrice>& prices, std::size_t pieces) {
      allreduces_.emplace_back(prices, ranks_, next, pieces);
      next = allreduces_.back().end_number();
    };
    for (std::size_t c = 0; c < chunks_; ++c) {
      const ChunkPlan& chunk = plan_.chunks[c];
      const int end = chunk.first_layer + chunk.layer_count;
      add_allreduce(prices_.reduce(c),
                    static_cast<std::size_t>(model.allreduce_pieces(chunk.first_layer, end)));
    }
    add_allreduce(prices_.reduce_tied(), 1);
    program_.messages.resize(next);
  }

  // For each all-reduce: the rank's action after which its gradients are final, and the action
  // after which its last values are sent, since the gradient that the former makes is sent before
  // them; past the end: the rank does not take part.
  void find_last_changes() {
    const std::vector<Action>& actions = schedule_.ranks[rank_];
    const LastChanges last = rules_.last_changes(actions);
    const auto note = [&](std::size_t sum, std::size_t at) {
      const bool sends =
          at + 1 < actions.size() && actions[at + 1].kind == ActionKind::kSendGradient;
      last_changes_[sum] = at;
      last_sends_[sum] = sends ? at + 1 : at;
    };
    last_changes_.assign(allreduces_.size(), actions.size());
    last_sends_ = last_changes_;
    for (const Action& action : actions) {
      const std::size_t c = action.chunk.index();
      if (action.kind == ActionKind::kReduce) note(c, last.chunks[c]);
      if (action.kind == ActionKind::kReduceTied) note(chunks_, last.tied);
    }
  }

  // Sends a piece of the messages that depend on no other rank.
  void send_early(const AllreduceMessages& sum, std::size_t piece) {
    for (const AllreduceMessages::Message& it : sum.early(rank_)) send_piece(it, piece);
  }

  void add(const Action& action) {
    const std::size_t c = action.chunk.index();
    receive_needs(action);
    switch (action.kind) {
      case ActionKind::kLoad:
      case ActionKind::kRecvTargets:
      case ActionKind::kRecvActivation:
      case ActionKind::kRecvGradient:
        return;  // they take no time
      case ActionKind::kSendTargets:
      case ActionKind::kSendActivation:
      case ActionKind::kSendGradient:
        return send_value(*rules_.sent_by(action));
      case ActionKind::kForward:
        return compute(price(c).forward);
      case ActionKind::kBackward:
        return backward(c, price(c).backward, again_share(c));
      case ActionKind::kBackwardInput:
        return compute(price(c).backward_input);
      case ActionKind::kBackwardWeight:
        return backward(c, price(c).backward_weight, 0);
      case ActionKind::kReduce:
        return reduce(allreduces_[c]);
      case ActionKind::kReduceTied:
        return reduce(allreduces_.back());
      case ActionKind::kVote:
        return vote();
      case ActionKind::kStep:
        return compute({optimizer_s_[rank_], 0});
      case ActionKind::kOffer:
        return for_each_allreduce([this](const AllreduceMessages& sum) {
          for (std::size_t piece = 0; piece < sum.pieces(); ++piece) send_early(sum, piece);
        });
      case ActionKind::kAdopt:
        return for_each_allreduce([this](const AllreduceMessages& sum) { reduce(sum); });
    }
  }

  void receive_needs(const Action& action) {
    for (const Value& value : rules_.needs(action)) {
      if (!rules_.crosses(value)) continue;
      receive(number_of(value), value.kind == ValueKind::kTargets
                                    ? prices_.small_message_s(rank_)
                                    : price_at(value, value.chunk).receive_s);
    }
  }

  void send_value(const Value& value) {
    const bool is_targets = value.kind == ValueKind::kTargets;
    send(number_of(value), rules_.user(value).index(), bytes_of(value),
         is_targets ? prices_.small_message_s(rank_)
                    : price_at(value, rules_.maker_chunk(value)).send_s);
  }

  double bytes_of(const Value& value) const {
    if (value.kind == ValueKind::kTargets) return prices_.target_bytes();
    const std::size_t chunk = rules_.boundary(value).index();
    return value.kind == ValueKind::kGradient ? prices_.gradient_bytes(chunk)
                                              : prices_.activation_bytes(chunk);
  }

  // Of an activation or a gradient, at the end that is `chunk` on the rank being compiled.
  const MessagePrice& price_at(const Value& value, ChunkId chunk) const {
    const MemberPrice& here = price(chunk.index());
    return chunk == rules_.boundary(value) ? here.after : here.before;
  }

  std::size_t number_of(const Value& value) const {
    if (value.kind == ValueKind::kTargets) return first_target_ + value.micro.index();
    const std::size_t first = value.kind == ValueKind::kGradient ? first_gradient_ : 0;
    return first + value.chunk.index() * micros_ + value.micro.index();
  }

  // The share of the second forward in a chunk's backward.
  double again_share(std::size_t c) const {
    const double backward_s = price(c).backward.median_s;
    return plan_.chunks[c].recompute && backward_s > 0 ? price(c).forward.median_s / backward_s : 0;
  }

  // A pass that adds to the gradients of the chunk's parameters from share `lead` of its time on.
  // The last one submits to the all-reduce what is final already.
  void backward(std::size_t c, const PricedTime& time, double lead) {
    const AllreduceMessages& sum = allreduces_[c];
    if (last_changes_[c] != action_ || sum.early(rank_).empty()) return compute(time);
    const double whole_s = seconds(time);
    const double piece_s = (1 - lead) * whole_s / static_cast<double>(sum.pieces());
    add_op(OpKind::kCompute, lead * whole_s + piece_s, 0);
    for (std::size_t piece = 0; piece + 1 < sum.pieces(); ++piece) {
      send_early(sum, piece);
      add_op(OpKind::kCompute, piece_s, 0);
    }
  }

  // In the order in which islands synchronise. Ranks that take no part have no messages.
  template <class Use>
  void for_each_allreduce(const Use& use) const {
    for (std::size_t c = chunks_; c-- > 0;) use(allreduces_[c]);
    use(allreduces_.back());
  }

  void reduce(const AllreduceMessages& sum) {
    for (const AllreduceMessages::Message& it : sum.later(rank_)) {
      if (it.price->message.from.index() == rank_) {
        send_piece(it, 0);
        continue;
      }
      for (std::size_t piece = 0; piece < it.pieces; ++piece) {
        receive(it.number + piece, it.price->price.receive_s / static_cast<double>(it.pieces));
      }
    }
  }

  void send_piece(const AllreduceMessages::Message& it, std::size_t piece) {
    const auto pieces = static_cast<double>(it.pieces);
    send(it.number + piece, it.price->message.to.index(), it.price->bytes / pieces,
         it.price->price.send_s / pieces);
    program_.messages[it.number + piece].is_bulk = true;
  }

  // Rank 0 answers the votes after it has received all.
  void vote() {
    const double message_s = prices_.small_message_s(rank_);
    if (rank_ > 0) {
      send(first_vote_ + rank_, 0, prices_.vote_bytes(rank_), message_s);
      return receive(first_check_result_ + rank_, message_s);
    }
    for (std::size_t from = 1; from < ranks_; ++from) receive(first_vote_ + from, message_s);
    for (std::size_t to = 1; to < ranks_; ++to) {
      send(first_check_result_ + to, to, prices_.vote_result_bytes(), message_s);
    }
  }

  void compute(const PricedTime& time) { add_op(OpKind::kCompute, seconds(time), 0); }

  double seconds(const PricedTime& time) const {
    const bool draw = draw_seed_ && time.sigma_s > 0;
    return draw ? drawn_s(time, *draw_seed_, rank_, action_) : time.median_s;
  }

  void send(std::size_t message, std::size_t to, double bytes, double seconds) {
    program_.messages[message] = {bytes, static_cast<std::uint32_t>(rank_),
                                  static_cast<std::uint32_t>(to)};
    add_op(OpKind::kSend, seconds, message);
  }

  void receive(std::size_t message, double seconds) { add_op(OpKind::kReceive, seconds, message); }

  void add_op(OpKind kind, double seconds, std::size_t message) {
    program_.ops.push_back(
        {seconds, static_cast<std::uint32_t>(action_), static_cast<std::uint32_t>(message), kind});
  }

  const MemberPrice& price(std::size_t chunk) const { return prices_.of(chunk, rank_); }

  const Schedule& schedule_;
  const Plan& plan_;
  const ActionRules rules_;
  const StepPrices& prices_;
  const std::optional<std::uint64_t> draw_seed_;
  const std::size_t chunks_;
  const std::size_t micros_;
  const std::size_t ranks_;
  std::vector<double> optimizer_s_;            // [Rank]
  std::vector<AllreduceMessages> allreduces_;  // [ChunkId] of R, and of T
  std::vector<std::size_t> last_changes_;      // parallel to allreduces_, for the current rank
  std::vector<std::size_t> last_sends_;        // the same
  std::size_t first_gradient_ = 0;
  std::size_t first_target_ = 0;
  std::size_t first_vote_ = 0;
  std::size_t first_check_result_ = 0;
  std::size_t rank_ = 0;    // the current one
  std::size_t action_ = 0;  // the current one in its list
  StepProgram program_;
};

}  // namespace

StepProgram compile_step(const Schedule& schedule,
                         const Plan& plan,
                         const CostModel& cost,
                         const std::vector<int>& rank_slots,
                         std::optional<std::uint64_t> draw_seed) {
  const StepPrices prices(plan, cost, rank_slots);
  return Compiler(schedule, plan, cost.sizes(), prices, draw_seed).compile();
}

}  // namespace motley

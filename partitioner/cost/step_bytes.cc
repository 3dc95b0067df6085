#include "partitioner/cost/step_bytes.h"

#include <map>
#include <span>
#include <utility>

#include "base/wire_sizes.h"
#include "pipeline/schedule/action_rules.h"
#include "pipeline/schedule/process_group.h"
#include "plan/gradient_group.h"

namespace motley {
namespace {

constexpr auto kHeader = static_cast<double>(kFrameHeaderBytes);
constexpr const char* kExact = "none";  // the codec of gradients inside a machine

// The all-reduce of `values` values over some ranks of the plan.
class SumCount {
 public:
  SumCount(const Plan& plan,
           std::span<const Rank> ranks,
           std::int64_t values,
           const PayloadBytes& payload)
      : plan_(plan), group_(process_group(plan, ranks)), values_(values), payload_(payload) {}

  [[nodiscard]] std::vector<AllreduceBytes> messages() const {
    const AllreducePlan whole(group_.machines, static_cast<std::size_t>(values_),
                              AllreducePlan::kWhole, group_.link_speeds);
    std::vector<AllreduceBytes> messages;
    Sent as_whole;
    for (const ReduceMessage& message : whole.all_messages()) {
      messages.push_back({message, codec_of(message), frame_bytes(message)});
      as_whole[{message.phase, message.from}] += messages.back().bytes;
    }
    Sent in_buckets;
    for (const AlikeBuckets& alike : whole.cut_further(kBucketValues)) {
      for (const ReduceMessage& message : whole.messages({{0, alike.values}, alike.owner})) {
        in_buckets[{message.phase, message.from}] +=
            static_cast<double>(alike.count) * frame_bytes(message);
      }
    }
    for (AllreduceBytes& sum : messages) {
      const std::pair sender(sum.message.phase, sum.message.from);
      const double share = sum.bytes / as_whole.at(sender);
      sum.bytes = share * in_buckets.at(sender);
    }
    return messages;
  }

 private:
  using Sent = std::map<std::pair<ReducePhase, Rank>, double>;  // bytes

  [[nodiscard]] std::string codec_of(const ReduceMessage& message) const {
    const bool inside =
        plan_.ranks[message.from.index()].machine == plan_.ranks[message.to.index()].machine;
    if (inside) return kExact;
    return plan_.rounds ? plan_.rounds->codec : plan_.gradient_codec;
  }

  [[nodiscard]] double frame_bytes(const ReduceMessage& message) const {
    return kHeader + payload_(message.from, static_cast<std::int64_t>(message.values.count),
                              codec_of(message));
  }

  const Plan& plan_;
  const ProcessGroup group_;
  const std::int64_t values_;
  const PayloadBytes& payload_;
};

std::vector<AllreduceBytes> count_sum(const Plan& plan,
                                      std::span<const Rank> ranks,
                                      std::int64_t values,
                                      const PayloadBytes& payload) {
  if (ranks.size() < 2 || values == 0) return {};
  return SumCount(plan, ranks, values, payload).messages();
}

// Calls `add(from, to, bytes)` for all messages of a step; pieces of all-reduces are combined.
template <class Add>
void for_each_message(const Plan& plan, const StepBytes& bytes, const Add& add) {
  const auto owners = owners_of(plan);
  const ActionRules rules(owners);
  const auto add_message = [&](const Value& value, double message_bytes) {
    if (rules.crosses(value)) add(rules.maker(value), rules.user(value), message_bytes);
  };
  for (MicroId micro{0}; micro.index() < rules.micro_batches(); ++micro.value) {
    for (ChunkId chunk{0}; chunk < rules.last_chunk(); ++chunk.value) {
      add_message({ValueKind::kActivation, {chunk.value + 1}, micro},
                  bytes.activation(chunk.index()));
      add_message({ValueKind::kGradient, chunk, micro}, bytes.gradient(chunk.index()));
    }
    add_message({ValueKind::kTargets, rules.last_chunk(), micro}, bytes.targets());
  }
  const double per_step = plan.rounds ? 1 / static_cast<double>(plan.rounds->steps) : 1;
  const auto add_allreduce = [&](const std::vector<AllreduceBytes>& messages) {
    for (const AllreduceBytes& sum : messages) {
      add(sum.message.from, sum.message.to, per_step * sum.bytes);
    }
  };
  for (std::size_t c = 0; c < owners.size(); ++c) add_allreduce(bytes.allreduce(c));
  add_allreduce(bytes.tied_allreduce());
  constexpr Rank kCounts{0};
  for (Rank rank{1}; rank.index() < plan.ranks.size(); ++rank.value) {
    add(rank, kCounts, bytes.vote(rank.index()));
    add(kCounts, rank, bytes.vote_result());
  }
}

}  // namespace

StepBytes::StepBytes(const Plan& plan, const ModelSizes& model, const PayloadBytes& payload)
    : targets_(kHeader + static_cast<double>(sizeof(Target)) *
                             static_cast<double>(model.targets(plan.micro_batch))) {
  for (const ChunkPlan& chunk : plan.chunks) {
    const int end = chunk.first_layer + chunk.layer_count;
    const BoundarySize size = model.boundary(end - 1, plan.micro_batch);
    gradients_.push_back(kHeader + payload(chunk.replicas.front().rank, size.floats, chunk.codec));
    activations_.push_back(gradients_.back() + static_cast<double>(size.exact_bytes));
    allreduces_.push_back(count_sum(plan, replica_ranks(chunk),
                                    model.reduced_parameters(chunk.first_layer, end), payload));
  }
  const std::vector<Rank> ends = tied_parameter_ranks(plan);
  allreduces_.push_back(count_sum(plan, ends, model.tied_parameters(), payload));
  const bool tied = model.tied_parameters() > 0 && ends.size() > 1;
  count_votes(plan, copy_groups(plan, tied));
}

// The first replica of a chunk in each island votes for its layers, and each replica sends a hash
// of its copy.
void StepBytes::count_votes(const Plan& plan, const std::vector<CopyGroup>& copies) {
  std::vector<std::size_t> layers(plan.ranks.size(), 0);
  for (const ChunkPlan& chunk : plan.chunks) {
    const std::vector<Rank> replicas = replica_ranks(chunk);
    for (const Rank rank : replicas) {
      const bool votes = in_island_of(plan.rounds, rank, replicas).front() == rank;
      if (votes) layers[rank.index()] += static_cast<std::size_t>(chunk.layer_count);
    }
  }
  vote_result_ = kHeader;
  for (Rank rank{0}; rank.index() < layers.size(); ++rank.value) {
    const auto hashes = static_cast<std::size_t>(std::ranges::count_if(
        copies, [&](const CopyGroup& group) { return holds_copy(group, rank); }));
    const auto vote = static_cast<double>(
        vote_bytes(layers[rank.index()], rank.value == 0 ? kStepFactors : 0, hashes));
    votes_.push_back(kHeader + vote);
    vote_result_ += static_cast<double>(sizeof(GatheredLength)) + vote;
  }
}

std::vector<double> sent_bytes(const Plan& plan, const StepBytes& bytes) {
  std::vector<double> sent(plan.ranks.size(), 0);
  for_each_message(plan, bytes, [&](Rank from, Rank /*to*/, double message_bytes) {
    sent[from.index()] += message_bytes;
  });
  return sent;
}

std::map<std::pair<Rank, Rank>, double> pair_bytes(const Plan& plan, const StepBytes& bytes) {
  std::map<std::pair<Rank, Rank>, double> pairs;
  for_each_message(plan, bytes, [&](Rank from, Rank to, double message_bytes) {
    pairs[{from, to}] += message_bytes;
  });
  return pairs;
}

}  // namespace motley

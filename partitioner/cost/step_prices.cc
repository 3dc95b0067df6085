#include "partitioner/cost/step_prices.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "pipeline/schedule/action.h"
#include "pipeline/schedule/sum_group.h"

namespace motley {
namespace {

constexpr double kFrameHeaderBytes = 64;  // docs/formats/frame.md
constexpr double kVoteHeadBytes = 20;     // tokens, loss, number of layers
constexpr double kVoteLayerBytes = 12;    // a layer and its squared norm
constexpr double kVoteLengthBytes = 4;    // before each vote in rank 0's answer
constexpr const char* kExact = "none";    // the codec of gradients inside a machine

// The deviation of a normal distribution with this median absolute deviation.
double sigma_of(double median_absolute_deviation) {
  constexpr double kSigmaOfMad = 1.4826;
  return kSigmaOfMad * median_absolute_deviation;
}

std::vector<Rank> ranks_of(const ChunkPlan& chunk) {
  std::vector<Rank> ranks;
  for (const Replica& replica : chunk.replicas) ranks.push_back(replica.rank);
  return ranks;
}

}  // namespace

StepPrices::StepPrices(const Plan& plan, const CostModel& cost, const std::vector<int>& rank_slots)
    : cost_(cost), rank_slots_(rank_slots) {
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) price_chunk(plan, c);
  first_holder_.push_back(holders_.size());
  std::vector<Rank> ends = ranks_of(plan.chunks.front());
  std::ranges::copy(ranks_of(plan.chunks.back()), std::back_inserter(ends));
  reduces_.push_back(price_sum(plan, distinct_ranks(ends), cost.tied_parameters()));
  target_bytes_ = static_cast<double>(cost.target_bytes(plan.micro_batch)) + kFrameHeaderBytes;
  for (const int slot : rank_slots) {
    small_message_s_.push_back(cost.message_s(slot));
  }
  size_votes(plan);
}

const HolderPrice& StepPrices::of(std::size_t chunk, std::size_t rank) const {
  std::size_t h = first_holder_[chunk];
  const std::size_t end = first_holder_[chunk + 1];
  while (h < end && holders_[h] != rank) ++h;
  MOTLEY_CHECK(h < end, "rank {} does not hold chunk {}", rank, chunk);
  return prices_[h];
}

void StepPrices::price_chunk(const Plan& plan, std::size_t chunk) {
  const ChunkPlan& what = plan.chunks[chunk];
  const int first = what.first_layer;
  const int last = first + what.layer_count;
  const double after_floats = floats_after(plan, chunk);
  const int any_slot = rank_slots_[what.replicas.front().rank.index()];
  boundary_bytes_.push_back(cost_.wire_bytes(any_slot, after_floats, what.codec) +
                            kFrameHeaderBytes);
  reduces_.push_back(price_sum(plan, ranks_of(what), cost_.summed_parameters(first, last)));
  first_holder_.push_back(holders_.size());
  for (const Replica& replica : what.replicas) {
    const int slot = rank_slots_[replica.rank.index()];
    // Layers vary independently of each other.
    double forward_variance = 0;
    double backward_variance = 0;
    double input_variance = 0;
    double weight_variance = 0;
    for (int l = first; l < last; ++l) {
      const LayerSample sample = cost_.layer(slot, l, plan.micro_batch);
      forward_variance += std::pow(sigma_of(sample.forward_spread_s), 2);
      const double sigma_s = sigma_of(sample.backward_spread_s);
      backward_variance += std::pow(sigma_s, 2);
      // The parts of a layer vary together.
      const double input_share =
          sample.backward_s > 0 ? sample.backward_input_s() / sample.backward_s : 1;
      input_variance += std::pow(input_share * sigma_s, 2);
      weight_variance += std::pow((1 - input_share) * sigma_s, 2);
    }
    if (what.recompute) {
      backward_variance += forward_variance;
      input_variance += forward_variance;
    }
    HolderPrice price;
    price.forward = {cost_.forward_s(slot, first, last, plan.micro_batch),
                     std::sqrt(forward_variance)};
    price.backward = {cost_.backward_s(slot, first, last, plan.micro_batch, what.recompute),
                      std::sqrt(backward_variance)};
    price.backward_input = {
        cost_.backward_input_s(slot, first, last, plan.micro_batch, what.recompute),
        std::sqrt(input_variance)};
    price.backward_weight = {cost_.backward_weight_s(slot, first, last, plan.micro_batch),
                             std::sqrt(weight_variance)};
    price.optimizer_s = cost_.optimizer_s(slot, first, last);
    price.after = message(slot, after_floats, what.codec);
    if (chunk > 0) {
      price.before = message(slot, floats_after(plan, chunk - 1), plan.chunks[chunk - 1].codec);
    }
    holders_.push_back(replica.rank.index());
    prices_.push_back(price);
  }
}

std::vector<ReducePrice> StepPrices::price_sum(const Plan& plan,
                                               const std::vector<Rank>& ranks,
                                               std::int64_t parameters) const {
  std::vector<ReducePrice> prices;
  if (ranks.size() < 2 || parameters == 0) return prices;
  const auto slot_of = [&](Rank rank) { return rank_slots_[rank.index()]; };
  const SumGroup group = sum_group(plan, ranks);
  const AllreducePlan sum(group.machines, static_cast<std::size_t>(parameters),
                          AllreducePlan::kWhole, group.link_speeds);
  for (const ReduceMessage& message : sum.all_messages()) {
    const bool inside = sum.machine_of(message.from) == sum.machine_of(message.to);
    const std::string codec = inside ? kExact : cost_.gradient_codec();
    const auto floats = static_cast<double>(message.values.count);
    const int from = slot_of(message.from);
    prices.push_back({message,
                      cost_.wire_bytes(from, floats, codec) + kFrameHeaderBytes,
                      {this->message(from, floats, codec).send_s,
                       this->message(slot_of(message.to), floats, codec).receive_s}});
  }
  return prices;
}

// As training/vote.h and comm/frames/frame_link.h write them.
void StepPrices::size_votes(const Plan& plan) {
  vote_bytes_.assign(rank_slots_.size(), kVoteHeadBytes);
  for (const ChunkPlan& chunk : plan.chunks) {
    vote_bytes_[chunk.replicas.front().rank.index()] += kVoteLayerBytes * chunk.layer_count;
  }
  verdict_bytes_ = kFrameHeaderBytes;
  for (double& bytes : vote_bytes_) {
    verdict_bytes_ += kVoteLengthBytes + bytes;
    bytes += kFrameHeaderBytes;
  }
}

MessagePrice StepPrices::message(int slot, double floats, const std::string& codec) const {
  const double handling_s = cost_.message_s(slot);
  return {handling_s + cost_.encode_s(slot, floats, codec),
          handling_s + cost_.decode_s(slot, floats, codec)};
}

double StepPrices::floats_after(const Plan& plan, std::size_t chunk) const {
  const ChunkPlan& what = plan.chunks[chunk];
  return cost_.boundary_floats(what.first_layer + what.layer_count - 1, plan.micro_batch);
}

}  // namespace motley

#include "partitioner/cost/step_prices.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.h"
#include "pipeline/schedule/bucket_role.h"

namespace motley {
namespace {

// The deviation of a normal distribution with this median absolute deviation.
double sigma_of(double median_absolute_deviation) {
  constexpr double kSigmaOfMad = 1.4826;
  return kSigmaOfMad * median_absolute_deviation;
}

StepBytes step_bytes(const Plan& plan, const CostModel& cost, const std::vector<int>& rank_slots) {
  return {plan, cost.sizes(), [&](Rank from, std::int64_t values, const std::string& codec) {
            return cost.payload_bytes(rank_slots[from.index()], static_cast<double>(values), codec);
          }};
}

}  // namespace

StepPrices::StepPrices(const Plan& plan, const CostModel& cost, const std::vector<int>& rank_slots)
    : cost_(cost), rank_slots_(rank_slots), bytes_(step_bytes(plan, cost, rank_slots)) {
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) price_chunk(plan, c);
  first_member_.push_back(members_.size());
  reduces_.push_back(price_allreduce(bytes_.tied_allreduce()));
  for (const int slot : rank_slots) {
    small_message_s_.push_back(cost.message_s(slot));
  }
}

const MemberPrice& StepPrices::of(std::size_t chunk, std::size_t rank) const {
  std::size_t h = first_member_[chunk];
  const std::size_t end = first_member_[chunk + 1];
  while (h < end && members_[h] != rank) ++h;
  MOTLEY_CHECK(h < end, "rank {} does not hold chunk {}", rank, chunk);
  return prices_[h];
}

void StepPrices::price_chunk(const Plan& plan, std::size_t chunk) {
  const ChunkPlan& what = plan.chunks[chunk];
  const int first = what.first_layer;
  const int last = first + what.layer_count;
  const BoundarySize after = size_after(plan, chunk);
  reduces_.push_back(price_allreduce(bytes_.allreduce(chunk)));
  first_member_.push_back(members_.size());
  for (const Replica& replica : what.replicas) {
    const int slot = rank_slots_[replica.rank.index()];
    // Layers vary independently of each other.
    double forward_s = 0;
    double backward_s = 0;
    double input_s = 0;
    double weight_s = 0;
    double forward_variance = 0;
    double backward_variance = 0;
    double input_variance = 0;
    double weight_variance = 0;
    for (int l = first; l < last; ++l) {
      const LayerSample sample = cost_.layer(slot, l, plan.micro_batch);
      const double again_s = what.recompute ? sample.forward_s : 0;
      forward_s += sample.forward_s;
      backward_s += sample.backward_s + again_s;
      input_s += sample.backward_input_s() + again_s;
      weight_s += sample.backward_weight_s();
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
    MemberPrice price;
    price.forward = {forward_s, std::sqrt(forward_variance)};
    price.backward = {backward_s, std::sqrt(backward_variance)};
    price.backward_input = {input_s, std::sqrt(input_variance)};
    price.backward_weight = {weight_s, std::sqrt(weight_variance)};
    price.optimizer_s = cost_.optimizer_s(slot, first, last);
    const double handling_s = cost_.message_s(slot);
    price.after = {handling_s + cost_.encode_s(slot, after, what.codec),
                   handling_s + cost_.decode_s(slot, after.gradient(), what.codec)};
    if (chunk > 0) {
      const BoundarySize before = size_after(plan, chunk - 1);
      const std::string& codec = plan.chunks[chunk - 1].codec;
      price.before = {handling_s + cost_.encode_s(slot, before.gradient(), codec),
                      handling_s + cost_.decode_s(slot, before, codec)};
    }
    members_.push_back(replica.rank.index());
    prices_.push_back(price);
  }
}

std::vector<ReducePrice> StepPrices::price_allreduce(
    const std::vector<AllreduceBytes>& messages) const {
  std::vector<ReducePrice> prices;
  std::set<std::pair<Rank, std::size_t>> shown;  // published by a rank, by their first value
  for (const AllreduceBytes& sum : messages) {
    const auto floats = static_cast<double>(sum.message.values.count);
    const int from = rank_slots_[sum.message.from.index()];
    const int to = rank_slots_[sum.message.to.index()];
    MessagePrice price{message(from, floats, sum.codec).send_s,
                       message(to, floats, sum.codec).receive_s};
    if (is_inside(sum.message.phase)) {
      // Written once for all readers.
      const bool stands_there = cost_.shares_memory(from) &&
                                sum.message.phase == ReducePhase::kLocalAllGather &&
                                !shown.emplace(sum.message.from, sum.message.values.first).second;
      price = {cost_.message_s(from) + (stands_there ? 0 : cost_.hand_s(from, floats)),
               cost_.message_s(to) + cost_.take_s(to, floats)};
    }
    prices.push_back({sum.message, sum.bytes, price});
  }
  return prices;
}

MessagePrice StepPrices::message(int slot, double floats, const std::string& codec) const {
  const double handling_s = cost_.message_s(slot);
  return {handling_s + cost_.encode_s(slot, floats, codec),
          handling_s + cost_.decode_s(slot, floats, codec)};
}

BoundarySize StepPrices::size_after(const Plan& plan, std::size_t chunk) const {
  const ChunkPlan& what = plan.chunks[chunk];
  return cost_.boundary(what.first_layer + what.layer_count - 1, plan.micro_batch);
}

}  // namespace motley

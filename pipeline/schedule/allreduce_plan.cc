#include "pipeline/schedule/allreduce_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

std::size_t grains_of(std::size_t count) {
  return count / AllreducePlan::kGrain + (count % AllreducePlan::kGrain > 0 ? 1 : 0);
}

// The values between two grains of a range.
ValueRange between_grains(ValueRange values, std::size_t first_grain, std::size_t end_grain) {
  const std::size_t first = std::min(values.count, first_grain * AllreducePlan::kGrain);
  const std::size_t end = std::min(values.count, end_grain * AllreducePlan::kGrain);
  return {values.first + first, end - first};
}

// Weights proportional to the machines' parts with which all links finish at the same time.
// [machine] Of n values and h machines, one with a part of p n values sends n (1 + (h - 2) p). At
// its speed s it finishes after T n with p = (T s - 1) / (h - 2). The parts of the machines A that
// have one add up to the whole with T = (h - 2 + |A|) / S, where S is the sum of their speeds.
// Their parts are therefore proportional to (h - 2 + |A|) s - S, in integers, which are the same on
// every processor. Machines too slow for a part are left out, the slowest first: sending their own
// values alone takes them longer.
std::vector<std::int64_t> part_weights(std::span<const std::int64_t> speeds) {
  const auto machines = static_cast<std::int64_t>(speeds.size());
  std::vector<std::size_t> slowest_first(speeds.size());
  std::iota(slowest_first.begin(), slowest_first.end(), 0);
  std::ranges::stable_sort(slowest_first, {}, [&](std::size_t machine) { return speeds[machine]; });
  std::int64_t sum = std::accumulate(speeds.begin(), speeds.end(), std::int64_t{0});
  std::int64_t factor = 2 * machines - 2;
  std::size_t left_out = 0;
  while (factor * speeds[slowest_first[left_out]] <= sum) {
    sum -= speeds[slowest_first[left_out]];
    --factor;
    ++left_out;
  }
  std::vector<std::int64_t> weights(speeds.size(), 0);
  for (std::size_t i = left_out; i < slowest_first.size(); ++i) {
    weights[slowest_first[i]] = factor * speeds[slowest_first[i]] - sum;
  }
  return weights;
}

// The number of grains that each machine owns. [machine]
std::vector<std::size_t> parts_of(std::size_t grains,
                                  std::size_t machines,
                                  std::span<const std::int64_t> link_speeds) {
  // Two machines both add up everything; a single machine exchanges nothing.
  if (machines < 3) return {grains};
  const std::vector<std::int64_t> weights =
      link_speeds.empty() ? std::vector<std::int64_t>(machines, 1) : part_weights(link_speeds);
  const auto total =
      static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::int64_t{0}));
  std::vector<std::size_t> parts;
  std::size_t begin = 0;
  std::int64_t before = 0;
  for (std::size_t machine = 0; machine < machines; ++machine) {
    before += weights[machine];
    const double edge =
        std::floor(static_cast<double>(grains) * static_cast<double>(before) / total + 0.5);
    const std::size_t end = machine + 1 == machines ? grains : static_cast<std::size_t>(edge);
    parts.push_back(end - begin);
    begin = end;
  }
  return parts;
}

}  // namespace

RanksByMachine ranks_by_machine(std::span<const Rank> ranks,
                                const std::function<const std::string&(Rank)>& machine_of) {
  RanksByMachine machines;
  for (const Rank rank : ranks) {
    const auto found = std::ranges::find_if(machines, [&](const std::vector<Rank>& members) {
      return machine_of(members.front()) == machine_of(rank);
    });
    if (found == machines.end()) {
      machines.push_back({rank});
    } else {
      found->push_back(rank);
    }
  }
  return machines;
}

ValueRange slice_of(ValueRange values, std::size_t local_ranks, std::size_t local_rank) {
  const std::size_t each = grains_of(values.count) / local_ranks;
  const std::size_t longer = grains_of(values.count) % local_ranks;
  const auto begin = [&](std::size_t p) { return p * each + std::min(p, longer); };
  return between_grains(values, begin(local_rank), begin(local_rank + 1));
}

AllreducePlan::AllreducePlan(RanksByMachine machines,
                             std::size_t count,
                             std::size_t bucket_values_max,
                             std::span<const std::int64_t> link_speeds)
    : machines_(std::move(machines)), value_count_(count) {
  MOTLEY_CHECK(!machines_.empty() && bucket_values_max > 0, "{} machines, buckets of {} values",
               machines_.size(), bucket_values_max);
  MOTLEY_CHECK(link_speeds.empty() || link_speeds.size() == machines_.size(),
               "speeds of {} links for {} machines", link_speeds.size(), machines_.size());
  for (const std::int64_t speed : link_speeds) {
    MOTLEY_CHECK(speed >= 1 && speed <= 1'000'000'000, "a link of speed {}", speed);
  }
  for (std::size_t machine = 0; machine < machines_.size(); ++machine) {
    const std::vector<Rank>& members = machines_[machine];
    MOTLEY_CHECK(!members.empty(), "machine {} of {} has no ranks", machine, machines_.size());
    for (std::size_t local_rank = 0; local_rank < members.size(); ++local_rank) {
      if (locations_.size() <= members[local_rank].index())
        locations_.resize(members[local_rank].index() + 1);
      locations_[members[local_rank].index()] = {machine, local_rank};
    }
  }
  cut_into_buckets(bucket_values_max, link_speeds);
}

// A part's buckets are spread evenly over the values, so that all parts end together. Buckets begin
// from the last value to the first.
void AllreducePlan::cut_into_buckets(std::size_t bucket_values_max,
                                     std::span<const std::int64_t> link_speeds) {
  struct Piece {
    double middle = 0;  // relative to its part: 0 is the beginning
    std::size_t grains = 0;
    std::size_t owner = 0;
  };

  const std::size_t bucket_grains = std::max<std::size_t>(1, bucket_values_max / kGrain);
  const std::vector<std::size_t> parts =
      parts_of(grains_of(value_count_), machines_.size(), link_speeds);
  std::vector<Piece> pieces;
  for (std::size_t owner = 0; owner < parts.size(); ++owner) {
    for (std::size_t done = 0; done < parts[owner];) {
      const std::size_t grains = std::min(bucket_grains, parts[owner] - done);
      const double middle =
          static_cast<double>(2 * done + grains) / static_cast<double>(2 * parts[owner]);
      pieces.push_back({middle, grains, owner});
      done += grains;
    }
  }
  std::ranges::stable_sort(pieces, {}, &Piece::middle);
  std::size_t first = 0;
  for (const Piece& piece : pieces) {
    const std::size_t end = first + piece.grains;
    buckets_.push_back({between_grains({0, value_count_}, first, end), piece.owner});
    first = end;
  }
  std::ranges::reverse(buckets_);
}

// A part is cut into full buckets and a last one. If the values do not fill the last grain, the
// bucket that cut_into_buckets() places behind all others is shorter: the last one of the part of
// which it is the smallest share.
std::vector<AlikeBuckets> AllreducePlan::cut_further(std::size_t bucket_values_max) const {
  const std::size_t bucket_grains = std::max<std::size_t>(1, bucket_values_max / kGrain);
  std::vector<AlikeBuckets> alike;
  std::size_t behind_all = 0;  // index in `alike`
  double last_middle = -1;
  for (auto it = buckets_.rbegin(); it != buckets_.rend(); ++it) {
    const ReduceBucket& part = *it;
    const std::size_t grains = grains_of(part.values.count);
    const std::size_t last = (grains - 1) % bucket_grains + 1;
    const std::size_t full = (grains - last) / bucket_grains;
    if (full > 0) alike.push_back({bucket_grains * kGrain, part.owner, full});
    const double middle = static_cast<double>(2 * grains - last) / static_cast<double>(2 * grains);
    if (middle >= last_middle) {
      behind_all = alike.size();
      last_middle = middle;
    }
    alike.push_back({last * kGrain, part.owner, 1});
  }
  if (!alike.empty()) {
    alike[behind_all].values -= grains_of(value_count_) * kGrain - value_count_;
  }
  return alike;
}

const AllreducePlan::Location& AllreducePlan::location_of(Rank rank) const {
  MOTLEY_CHECK(
      rank.index() < locations_.size() && locations_[rank.index()].machine < machines_.size(),
      "rank {} holds none of the values", rank.value);
  return locations_[rank.index()];
}

std::vector<ReduceMessage> AllreducePlan::messages(const ReduceBucket& bucket) const {
  std::vector<ReduceMessage> messages;
  add_inside(ReducePhase::kLocalReduceScatter, bucket.values, messages);
  add_between(bucket, messages);
  add_inside(ReducePhase::kLocalAllGather, bucket.values, messages);
  sort(messages);
  return messages;
}

std::vector<ReduceMessage> AllreducePlan::all_messages() const {
  std::vector<ReduceMessage> messages;
  for (const ReduceBucket& bucket : buckets_) {
    add_inside(ReducePhase::kLocalReduceScatter, bucket.values, messages);
    add_between(bucket, messages);
    add_inside(ReducePhase::kLocalAllGather, bucket.values, messages);
  }
  sort(messages);
  return messages;
}

void AllreducePlan::add_inside(ReducePhase phase,
                               ValueRange values,
                               std::vector<ReduceMessage>& to) const {
  for (const std::vector<Rank>& members : machines_) {
    for (std::size_t from = 0; from < members.size(); ++from) {
      for (std::size_t other = 0; other < members.size(); ++other) {
        if (other == from) continue;
        const std::size_t owner = phase == ReducePhase::kLocalReduceScatter ? other : from;
        const ValueRange slice = slice_of(values, members.size(), owner);
        if (slice.count > 0) to.push_back({phase, members[from], members[other], slice});
      }
    }
  }
}

void AllreducePlan::add_between(const ReduceBucket& bucket, std::vector<ReduceMessage>& to) const {
  if (machines_.size() < 2) return;
  const bool direct = machines_.size() == 2;
  for (const Segment& segment : segments_of(bucket.values)) {
    for (std::size_t other = 0; other < machines_.size(); ++other) {
      if (other == bucket.owner) continue;
      const Rank there = segment.ranks[other];
      const Rank owner = segment.ranks[bucket.owner];
      const ReducePhase back =
          direct ? ReducePhase::kCrossReduceScatter : ReducePhase::kCrossAllGather;
      to.push_back({ReducePhase::kCrossReduceScatter, there, owner, segment.values});
      to.push_back({back, owner, there, segment.values});
    }
  }
}

std::vector<AllreducePlan::Segment> AllreducePlan::segments_of(ValueRange values) const {
  std::vector<Segment> segments;
  std::vector<std::size_t> local_ranks(machines_.size(),
                                       0);  // [machine] local rank of the next value
  for (std::size_t first = values.first; first < values.end();) {
    std::size_t end = values.end();
    std::vector<Rank> ranks;
    for (std::size_t machine = 0; machine < machines_.size(); ++machine) {
      const std::vector<Rank>& members = machines_[machine];
      std::size_t& local_rank = local_ranks[machine];
      while (slice_of(values, members.size(), local_rank).end() <= first) ++local_rank;
      end = std::min(end, slice_of(values, members.size(), local_rank).end());
      ranks.push_back(members[local_rank]);
    }
    segments.push_back({{first, end - first}, std::move(ranks)});
    first = end;
  }
  return segments;
}

void AllreducePlan::sort(std::vector<ReduceMessage>& messages) const {
  const auto behind = [](std::size_t from, std::size_t to, std::size_t count) {
    return to >= from ? to - from : to + count - from;
  };
  const auto key = [&](const ReduceMessage& message) {
    const Location& from = location_of(message.from);
    const Location& to = location_of(message.to);
    const std::size_t distance =
        from.machine == to.machine
            ? behind(from.local_rank, to.local_rank, machines_[to.machine].size())
            : behind(from.machine, to.machine, machines_.size());
    return std::tuple(message.phase, message.from, distance, message.values.first);
  };
  std::ranges::sort(messages, {}, key);
}

std::vector<MachineTraffic> traffic_between(const AllreducePlan& plan,
                                            std::span<const ReduceMessage> messages) {
  std::vector<MachineTraffic> traffic(plan.machines().size());
  for (const ReduceMessage& message : messages) {
    const std::size_t from = plan.machine_of(message.from);
    const std::size_t to = plan.machine_of(message.to);
    if (from == to) continue;
    traffic[from].out += message.values.count;
    traffic[to].in += message.values.count;
  }
  return traffic;
}

}  // namespace motley

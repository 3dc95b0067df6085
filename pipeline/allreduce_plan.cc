#include "pipeline/allreduce_plan.h"

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

// How many grains each machine owns. [machine]
std::vector<std::size_t> parts_of(std::size_t grains,
                                  std::size_t machines,
                                  std::span<const double> weights) {
  // Two machines add everything up twice, one has nobody to share with.
  if (machines < 3) return {grains};
  const auto weight = [&](std::size_t machine) { return weights.empty() ? 1 : weights[machine]; };
  double total = 0;
  for (std::size_t machine = 0; machine < machines; ++machine) total += weight(machine);
  std::vector<std::size_t> parts;
  std::size_t begin = 0;
  double before = 0;
  for (std::size_t machine = 0; machine < machines; ++machine) {
    before += weight(machine);
    const double edge = std::floor(static_cast<double>(grains) * before / total + 0.5);
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

ValueRange slice_of(ValueRange values, std::size_t places, std::size_t place) {
  const std::size_t each = grains_of(values.count) / places;
  const std::size_t longer = grains_of(values.count) % places;
  const auto begin = [&](std::size_t p) { return p * each + std::min(p, longer); };
  return between_grains(values, begin(place), begin(place + 1));
}

AllreducePlan::AllreducePlan(RanksByMachine machines,
                             std::size_t count,
                             std::size_t bucket_values_max,
                             std::span<const double> weights)
    : machines_(std::move(machines)), value_count_(count) {
  MOTLEY_CHECK(!machines_.empty() && bucket_values_max > 0, "{} machines, buckets of {} values",
               machines_.size(), bucket_values_max);
  MOTLEY_CHECK(weights.empty() || weights.size() == machines_.size(), "{} weights for {} machines",
               weights.size(), machines_.size());
  for (std::size_t machine = 0; machine < machines_.size(); ++machine) {
    const std::vector<Rank>& members = machines_[machine];
    MOTLEY_CHECK(!members.empty(), "machine {} of {} has no ranks", machine, machines_.size());
    for (std::size_t place = 0; place < members.size(); ++place) {
      if (seats_.size() <= members[place].index()) seats_.resize(members[place].index() + 1);
      seats_[members[place].index()] = {machine, place};
    }
  }
  cut_into_buckets(bucket_values_max, weights);
}

// A part's buckets are spread evenly over the values, so that the parts end together. They are
// begun from the last value to the first.
void AllreducePlan::cut_into_buckets(std::size_t bucket_values_max,
                                     std::span<const double> weights) {
  struct Piece {
    double middle = 0;  // of its part: 0 is the beginning
    std::size_t grains = 0;
    std::size_t owner = 0;
  };

  const std::size_t bucket_grains = std::max<std::size_t>(1, bucket_values_max / kGrain);
  const std::vector<std::size_t> parts =
      parts_of(grains_of(value_count_), machines_.size(), weights);
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

const AllreducePlan::Seat& AllreducePlan::seat_of(Rank rank) const {
  MOTLEY_CHECK(rank.index() < seats_.size() && seats_[rank.index()].machine < machines_.size(),
               "rank {} holds none of the values", rank.value);
  return seats_[rank.index()];
}

std::vector<ReduceMessage> AllreducePlan::messages(const ReduceBucket& bucket) const {
  std::vector<ReduceMessage> messages;
  add_inside(ReducePhase::kCollect, bucket.values, messages);
  add_between(bucket, messages);
  add_inside(ReducePhase::kSpread, bucket.values, messages);
  sort(messages);
  return messages;
}

std::vector<ReduceMessage> AllreducePlan::all_messages() const {
  std::vector<ReduceMessage> messages;
  for (const ReduceBucket& bucket : buckets_) {
    add_inside(ReducePhase::kCollect, bucket.values, messages);
    add_between(bucket, messages);
    add_inside(ReducePhase::kSpread, bucket.values, messages);
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
        const std::size_t whose = phase == ReducePhase::kCollect ? other : from;
        const ValueRange slice = slice_of(values, members.size(), whose);
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
      const ReducePhase back = direct ? ReducePhase::kExchange : ReducePhase::kGive;
      to.push_back({ReducePhase::kExchange, there, owner, segment.values});
      to.push_back({back, owner, there, segment.values});
    }
  }
}

std::vector<AllreducePlan::Segment> AllreducePlan::segments_of(ValueRange values) const {
  std::vector<Segment> segments;
  std::vector<std::size_t> places(machines_.size(), 0);  // [machine] that has the next value
  for (std::size_t first = values.first; first < values.end();) {
    std::size_t end = values.end();
    std::vector<Rank> ranks;
    for (std::size_t machine = 0; machine < machines_.size(); ++machine) {
      const std::vector<Rank>& members = machines_[machine];
      std::size_t& place = places[machine];
      while (slice_of(values, members.size(), place).end() <= first) ++place;
      end = std::min(end, slice_of(values, members.size(), place).end());
      ranks.push_back(members[place]);
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
    const Seat& from = seat_of(message.from);
    const Seat& to = seat_of(message.to);
    const std::size_t distance = from.machine == to.machine
                                     ? behind(from.place, to.place, machines_[to.machine].size())
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

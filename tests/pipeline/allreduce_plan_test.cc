#include "pipeline/schedule/allreduce_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "tests/support/property.h"

namespace motley {
namespace {

constexpr std::size_t kGrain = AllreducePlan::kGrain;

// Up to four machines with one to three ranks each, numbered in any order.
RanksByMachine random_machines(int machines_min = 1) {
  const int machines = *rc::gen::inRange(machines_min, 5);
  std::vector<std::string> seats;
  for (int machine = 0; machine < machines; ++machine) {
    seats.insert(seats.end(), *rc::gen::inRange<std::size_t>(1, 4), fmt::format("m{}", machine));
  }
  for (std::size_t i = seats.size(); i > 1; --i) {
    std::swap(seats[i - 1], seats[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  std::vector<Rank> ranks;
  for (std::int32_t rank = 0; rank < std::ssize(seats); ++rank) ranks.push_back(Rank{rank});
  return ranks_by_machine(ranks,
                          [&](Rank rank) -> const std::string& { return seats[rank.index()]; });
}

AllreducePlan random_plan() {
  return {random_machines(), *rc::gen::inRange<std::size_t>(0, 6000),
          *rc::gen::inRange<std::size_t>(1, 3000)};
}

int rank_count(const AllreducePlan& plan) {
  std::size_t count = 0;
  for (const auto& members : plan.machines()) count += members.size();
  return static_cast<int>(count);
}

// How often each rank's value is contained in a rank's sum: four bits per rank.
using Ledger = std::vector<std::vector<std::uint64_t>>;  // [Rank][value]

Ledger untouched(const AllreducePlan& plan) {
  Ledger ledger;
  for (int rank = 0; rank < rank_count(plan); ++rank) {
    ledger.emplace_back(plan.value_count(), std::uint64_t{1} << (4 * rank));
  }
  return ledger;
}

// Executes the messages on the ledger. REQUIRES: phases ascend.
void carry_out(const std::vector<ReduceMessage>& messages, Ledger& ledger) {
  for (std::size_t p = 0; p < kReducePhases; ++p) {
    const auto phase = static_cast<ReducePhase>(p);
    const bool adds =
        phase == ReducePhase::kLocalReduceScatter || phase == ReducePhase::kCrossReduceScatter;
    const Ledger before = ledger;
    for (const ReduceMessage& message : messages) {
      if (message.phase != phase) continue;
      for (std::size_t v = message.values.first; v < message.values.end(); ++v) {
        const std::uint64_t sent = before[message.from.index()][v];
        std::uint64_t& kept = ledger[message.to.index()][v];
        kept = adds ? kept + sent : sent;
      }
    }
  }
}

void expect_all_summed(const AllreducePlan& plan, const Ledger& ledger) {
  std::uint64_t once_each = 0;
  for (int rank = 0; rank < rank_count(plan); ++rank) once_each |= std::uint64_t{1} << (4 * rank);
  for (const auto& values : ledger) {
    RC_ASSERT(std::ranges::all_of(values, [&](std::uint64_t v) { return v == once_each; }));
  }
}

RC_GTEST_PROP(AllreducePlan, GivesEveryRankEachValueOnceFromAll, ()) {
  const AllreducePlan plan = random_plan();
  Ledger ledger = untouched(plan);
  for (const ReduceBucket& bucket : plan.buckets()) carry_out(plan.messages(bucket), ledger);
  expect_all_summed(plan, ledger);
}

RC_GTEST_PROP(AllreducePlan, DoesTheSameWithAllBucketsAtOnce, ()) {
  const AllreducePlan plan = random_plan();
  Ledger ledger = untouched(plan);
  carry_out(plan.all_messages(), ledger);
  expect_all_summed(plan, ledger);
}

RC_GTEST_PROP(AllreducePlan, HasNoMessageThatIsEmptyOrToOneself, ()) {
  const AllreducePlan plan = random_plan();
  for (const ReduceBucket& bucket : plan.buckets()) {
    for (const ReduceMessage& message : plan.messages(bucket)) {
      RC_ASSERT(message.from != message.to);
      RC_ASSERT(message.values.count > 0);
      RC_ASSERT(message.values.first >= bucket.values.first);
      RC_ASSERT(message.values.end() <= bucket.values.end());
    }
  }
}

// Therefore several messages of a phase may share a tag.
RC_GTEST_PROP(AllreducePlan, SendsARangeAfterThoseBeforeIt, ()) {
  const AllreducePlan plan = random_plan();
  for (const ReduceBucket& bucket : plan.buckets()) {
    std::map<std::tuple<ReducePhase, Rank, Rank>, std::size_t> ends;
    for (const ReduceMessage& message : plan.messages(bucket)) {
      std::size_t& end = ends[{message.phase, message.from, message.to}];
      RC_ASSERT(message.values.first >= end);
      end = message.values.end();
    }
  }
}

// A value leaves each machine once for its owner, and returns from the owner once to each machine.
RC_GTEST_PROP(AllreducePlan, UsesUplinksAsLittleAsPossible, ()) {
  const AllreducePlan plan = random_plan();
  const std::size_t machines = plan.machines().size();
  const std::size_t count = plan.value_count();
  std::vector<std::size_t> parts(machines, 0);
  for (const ReduceBucket& bucket : plan.buckets()) parts[bucket.owner] += bucket.values.count;
  const auto traffic = traffic_between(plan, plan.all_messages());
  for (std::size_t machine = 0; machine < machines; ++machine) {
    const std::size_t expected = machines == 1   ? 0
                                 : machines == 2 ? count
                                                 : count + parts[machine] * (machines - 2);
    RC_ASSERT(traffic[machine].out == expected);
    RC_ASSERT(traffic[machine].in == expected);
    // 2 N (H - 1) / H, except that parts are whole grains.
    const auto h = static_cast<double>(machines);
    const double ideal = 2 * static_cast<double>(count) * (h - 1) / h;
    RC_ASSERT(std::abs(static_cast<double>(expected) - ideal) <= 2 * kGrain * (h - 1));
  }
}

// When the last machine is done if its part of all values is parts[i]; in values per unit of
// speed.
double last_done(const std::vector<double>& parts, const std::vector<std::int64_t>& speeds) {
  const double machines = static_cast<double>(parts.size());
  const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
  double last = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    last = std::max(last, (all + (machines - 2) * parts[i]) / static_cast<double>(speeds[i]));
  }
  return last;
}

// The least time, by bisection: within T a machine can own a part of (T s - n) / (h - 2), and
// needs T s >= n for its own values.
double least_time(double count, const std::vector<std::int64_t>& speeds) {
  const double machines = static_cast<double>(speeds.size());
  const auto is_enough = [&](double time) {
    double owned = 0;
    for (const std::int64_t speed : speeds) {
      const double sent = time * static_cast<double>(speed);
      if (sent < count) return false;
      owned += (sent - count) / (machines - 2);
    }
    return owned >= count;
  };
  double low = 0;
  double high = 2 * count;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (is_enough(middle) ? high : low) = middle;
  }
  return high;
}

RC_GTEST_PROP(AllreducePlan, LetsUnequalLinksEndAsSoonAsPossible, ()) {
  const RanksByMachine machines = random_machines(3);
  std::vector<std::int64_t> speeds;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    speeds.push_back(*rc::gen::weightedOneOf<std::int64_t>(
        {{3, rc::gen::inRange<std::int64_t>(1, 100)}, {1, rc::gen::just<std::int64_t>(1000)}}));
  }
  const auto count = *rc::gen::inRange<std::size_t>(1, 50'000);
  const AllreducePlan plan(machines, count, 1000, speeds);
  std::vector<double> parts(machines.size(), 0);
  for (const ReduceBucket& bucket : plan.buckets()) {
    parts[bucket.owner] += static_cast<double>(bucket.values.count);
  }
  // A boundary between two parts may be off by a grain, so a part by two.
  const double grains = 2 * static_cast<double>(kGrain * machines.size()) /
                        static_cast<double>(*std::ranges::min_element(speeds));
  RC_ASSERT(last_done(parts, speeds) <=
            least_time(static_cast<double>(count), speeds) * (1 + 1e-9) + grains);

  const std::vector<MachineTraffic> traffic = traffic_between(plan, plan.all_messages());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double sent =
        static_cast<double>(count) + (static_cast<double>(parts.size()) - 2) * parts[i];
    RC_ASSERT(static_cast<double>(traffic[i].out) == sent);
    RC_ASSERT(static_cast<double>(traffic[i].in) == sent);
  }
}

TEST(AllreducePlan, GivesAMachineWithASlowLinkNoPart) {
  const std::vector<std::int64_t> speeds = {940, 40, 940};
  const AllreducePlan plan({{Rank{0}}, {Rank{1}}, {Rank{2}}}, 90 * kGrain, AllreducePlan::kWhole,
                           speeds);
  for (const ReduceBucket& bucket : plan.buckets()) EXPECT_NE(bucket.owner, 1U);
  const std::vector<MachineTraffic> traffic = traffic_between(plan, plan.all_messages());
  EXPECT_EQ(traffic[1].out, 90 * kGrain);
  EXPECT_EQ(traffic[0].out, 135 * kGrain);
}

RC_GTEST_PROP(AllreducePlan, SharesTheWorkOfAMachineAmongItsRanks, ()) {
  const auto places = *rc::gen::inRange<std::size_t>(1, 9);
  const ValueRange values{*rc::gen::inRange<std::size_t>(0, 1000),
                          *rc::gen::inRange<std::size_t>(0, 10'000)};
  std::size_t next = values.first;
  std::size_t least = values.count;
  std::size_t most = 0;
  for (std::size_t place = 0; place < places; ++place) {
    const ValueRange slice = slice_of(values, places, place);
    if (slice.count > 0) RC_ASSERT(slice.first == next);
    next += slice.count;
    least = std::min(least, slice.count);
    most = std::max(most, slice.count);
  }
  RC_ASSERT(next == values.end());
  RC_ASSERT(most - least < 2 * kGrain);  // the last grain may have a single value
}

TEST(AllreducePlan, LetsTwoMachinesExchangeTheirSums) {
  const AllreducePlan plan({{Rank{0}, Rank{2}}, {Rank{1}}}, 3 * kGrain, AllreducePlan::kWhole);
  const ValueRange first{0, 2 * kGrain};
  const ValueRange second{2 * kGrain, kGrain};
  const std::vector<ReduceMessage> expected = {
      {ReducePhase::kLocalReduceScatter, Rank{0}, Rank{2}, second},
      {ReducePhase::kLocalReduceScatter, Rank{2}, Rank{0}, first},
      {ReducePhase::kCrossReduceScatter, Rank{0}, Rank{1}, first},
      {ReducePhase::kCrossReduceScatter, Rank{1}, Rank{0}, first},
      {ReducePhase::kCrossReduceScatter, Rank{1}, Rank{2}, second},
      {ReducePhase::kCrossReduceScatter, Rank{2}, Rank{1}, second},
      {ReducePhase::kLocalAllGather, Rank{0}, Rank{2}, first},
      {ReducePhase::kLocalAllGather, Rank{2}, Rank{0}, second},
  };
  EXPECT_EQ(plan.all_messages(), expected);
}

RC_GTEST_PROP(AllreducePlan, BeginsWithTheLastValues, ()) {
  const AllreducePlan plan = random_plan();
  std::size_t end = plan.value_count();
  for (const ReduceBucket& bucket : plan.buckets()) {
    RC_ASSERT(bucket.values.end() == end);
    end = bucket.values.first;
  }
  RC_ASSERT(end == 0U);
}

TEST(AllreducePlan, LetsBucketsOfAllPartsTakeTurns) {
  const AllreducePlan plan({{Rank{0}}, {Rank{1}}, {Rank{2}}}, 6 * kGrain, kGrain);
  std::vector<std::size_t> owners;
  for (const ReduceBucket& bucket : plan.buckets()) owners.push_back(bucket.owner);
  EXPECT_EQ(owners, (std::vector<std::size_t>{2, 1, 0, 2, 1, 0}));
}

RC_GTEST_PROP(AllreducePlan, CountsTheBucketsOfAFinerPlanWithoutListingThem, ()) {
  const RanksByMachine machines = random_machines();
  std::vector<std::int64_t> speeds;
  for (std::size_t m = 0; m < machines.size(); ++m) speeds.push_back(*rc::gen::inRange(1, 5));
  if (*rc::gen::arbitrary<bool>()) speeds.clear();
  const auto count = *rc::gen::inRange<std::size_t>(0, 60'000);
  const auto bucket_values_max = *rc::gen::inRange<std::size_t>(1, 3000);
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> listed;  // by owner and size
  const AllreducePlan finer(machines, count, bucket_values_max, speeds);
  for (const ReduceBucket& bucket : finer.buckets()) {
    ++listed[{bucket.owner, bucket.values.count}];
  }
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> counted;
  const AllreducePlan whole(machines, count, AllreducePlan::kWhole, speeds);
  for (const AlikeBuckets& alike : whole.cut_further(bucket_values_max)) {
    counted[{alike.owner, alike.values}] += alike.count;
  }
  RC_ASSERT(counted == listed);
}

}  // namespace
}  // namespace motley

#include "pipeline/collectives/hierarchical_allreduce.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/transport/inproc_transport.h"
#include "compression/make_codec.h"
#include "tests/support/counting_transport.h"
#include "tests/support/late_transport.h"
#include "tests/support/property.h"
#include "tests/support/rank_group.h"

namespace motley {
namespace {

using testing::HasSubstr;

struct Case {
  RanksByMachine machines;
  std::size_t count = 10'000;
  std::size_t bucket_values = 1000;
  int window = 4;
  std::string codec = "none";
  int steps = 1;  // more than 1 only with a lossless codec
};

const RanksByMachine kTwoByTwo = {{Rank{0}, Rank{2}}, {Rank{1}, Rank{3}}};
const RanksByMachine kOneTwoThree = {{Rank{0}}, {Rank{1}, Rank{2}}, {Rank{3}, Rank{4}, Rank{5}}};
const RanksByMachine kThreeAndOne = {{Rank{0}, Rank{1}, Rank{2}}, {Rank{3}}};
const RanksByMachine kPair = {{Rank{0}}, {Rank{1}}};

int rank_count(const RanksByMachine& machines) {
  std::size_t count = 0;
  for (const auto& members : machines) count += members.size();
  return static_cast<int>(count);
}

// Values whose sum depends on the order of additions.
std::vector<float> values_of(Rank rank, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    const float large = rank.value == 1 ? 1e8F : rank.value == 2 ? -1e8F : 0.3F;
    values.push_back(large + static_cast<float>((i + rank.index()) % 7));
  }
  return values;
}

// Values that a lossy codec rounds.
std::vector<float> small_values_of(Rank rank, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(std::sin(static_cast<float>(i) * 0.7F + static_cast<float>(rank.value)));
  }
  return values;
}

using Values = std::vector<float>;
using MakeValues = Values (*)(Rank, std::size_t);

// The slow reference: adds the ranks of each machine in order, then the machines in order.
struct Reference {
  std::vector<Values> machine_sums;
  Values sum;
};

Reference reference(const Case& c, MakeValues make) {
  const auto add = [](Values& total, const Values& term) {
    if (total.empty()) {
      total = term;
    } else {
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += term[i];
    }
  };
  Reference result;
  for (const std::vector<Rank>& members : c.machines) {
    Values& machine_sum = result.machine_sums.emplace_back();
    for (const Rank rank : members) add(machine_sum, make(rank, c.count));
    add(result.sum, machine_sum);
  }
  return result;
}

struct Summed {
  std::vector<Values> steps;  // [step - 1]
  std::optional<Error> error;

  [[nodiscard]] const Values& first() const { return steps.front(); }
};

std::vector<Values> in_every_step(const Case& c, const Values& sum) {
  return std::vector<Values>(static_cast<std::size_t>(c.steps), sum);
}

Values times(Values values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

// One rank's part. Values differ between steps, so that a stale value of an earlier step is
// detected: each step doubles the previous values, which rounds in the same way, and its result is
// scaled back to the first step's.
Summed sum_on(Transport& transport, Rank self, const Case& c, const Values& values) {
  Summed summed;
  FrameLink link(transport, self, /*epoch=*/1, /*plan_hash=*/2);
  const AllreducePlan plan(c.machines, values.size(), c.bucket_values);
  const auto codec = make_codec(c.codec);
  CodecEncoder encoder(**codec);
  const auto allreduce =
      HierarchicalAllreduce::make(link, self, AllreduceId{.chunk = ChunkId{3}}, plan, encoder,
                                  {.window = c.window, .stall_timeout = 1});
  for (int step = 1; step <= c.steps && !summed.error; ++step) {
    Values& sums = summed.steps.emplace_back(times(values, std::ldexp(1.0F, step - 1)));
    const auto waited = (*allreduce)->run(step, sums);
    if (!waited.ok()) summed.error = waited.error();
    sums = times(std::move(sums), std::ldexp(1.0F, 1 - step));
  }
  return summed;
}

// [Rank]
std::vector<Summed> sum(RankGroup& group, const Case& c, MakeValues make = values_of) {
  std::vector<Summed> summed(static_cast<std::size_t>(group.size()));
  group.run([&](Rank self) {
    const bool is_member = std::ranges::any_of(c.machines, [&](const auto& members) {
      return std::ranges::find(members, self) != members.end();
    });
    if (is_member) summed[self.index()] = sum_on(group.at(self), self, c, make(self, c.count));
  });
  return summed;
}

RC_GTEST_PROP(HierarchicalAllreduce, AddsInTheOrderOfRanksAndMachines, ()) {
  Case c;
  int next = 0;
  for (int machines = *rc::gen::inRange(1, 5); machines > 0; --machines) {
    std::vector<Rank>& members = c.machines.emplace_back();
    for (int ranks = *rc::gen::inRange(1, 4); ranks > 0; --ranks) members.push_back(Rank{next++});
  }
  c.count = *rc::gen::inRange<std::size_t>(0, 5000);
  c.bucket_values = *rc::gen::inRange<std::size_t>(1, 3000);
  c.window = *rc::gen::inRange(1, 10);
  c.steps = *rc::gen::inRange(1, 4);
  RankGroup group("inproc", next);
  const std::vector<Values> expected = in_every_step(c, reference(c, values_of).sum);
  for (const Summed& each : sum(group, c)) {
    RC_ASSERT(!each.error);
    RC_ASSERT(each.steps == expected);
  }
}

class HierarchicalAllreduceOver : public testing::TestWithParam<std::string> {};

TEST_P(HierarchicalAllreduceOver, HasTheSameBitsOnEveryRankInEveryStep) {
  for (const auto& machines : {kTwoByTwo, kOneTwoThree, kThreeAndOne}) {
    const Case c{.machines = machines, .count = 100'001, .bucket_values = 4096, .steps = 3};
    RankGroup group(GetParam(), rank_count(machines));
    const std::vector<Values> expected = in_every_step(c, reference(c, values_of).sum);
    for (const Summed& each : sum(group, c)) {
      ASSERT_FALSE(each.error) << describe(*each.error);
      EXPECT_EQ(each.steps, expected);
    }
  }
}

TEST_P(HierarchicalAllreduceOver, EndsWhenARankIsLost) {
  const Case c{.machines = kOneTwoThree};
  RankGroup group(GetParam(), rank_count(c.machines));
  const Rank lost{4};
  group.destroy(lost);
  group.run([&](Rank self) {
    if (self == lost) return;
    const Summed summed = sum_on(group.at(self), self, c, values_of(self, c.count));
    ASSERT_TRUE(summed.error);
    EXPECT_EQ(summed.error->code, ErrorCode::kPeer) << describe(*summed.error);
    EXPECT_THAT(summed.error->what, HasSubstr("all-reduce of chunk 3, bucket "));
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         HierarchicalAllreduceOver,
                         testing::ValuesIn(all_transport_kinds()),
                         [](const auto& kind) { return "Over_" + kind.param; });

TEST(HierarchicalAllreduce, NamesTheRankThatIsSilent) {
  RankGroup group("inproc", 2);
  const Case c{.machines = kPair};
  const Summed summed = sum_on(group.at(Rank{0}), Rank{0}, c, values_of(Rank{0}, c.count));
  ASSERT_TRUE(summed.error);
  EXPECT_EQ(summed.error->code, ErrorCode::kPeer);
  EXPECT_THAT(summed.error->what, HasSubstr("bucket 1 of 12, reduce-scatter between machines: "
                                            "waiting for rank 1: timed out after 1 s"));
}

TEST(HierarchicalAllreduce, LeavesOtherRanksAlone) {
  RankGroup group("inproc", 4);
  const auto summed = sum(group, {.machines = {{Rank{1}}, {Rank{3}}}});
  ASSERT_FALSE(summed[1].error) << describe(*summed[1].error);
  EXPECT_EQ(summed[1].first(), summed[3].first());
  EXPECT_EQ(summed[1].first()[0], values_of(Rank{1}, 1)[0] + values_of(Rank{3}, 1)[0]);
}

double largest(const Values& values) {
  double most = 0;
  for (const float v : values) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

// Every machine's sum is rounded once, and with more than two machines the total too. A rounding
// error is at most `share` of the largest value.
void expect_rounded(const Case& c, double share) {
  RankGroup group("inproc", rank_count(c.machines));
  const Reference expected = reference(c, small_values_of);
  double rounded = largest(expected.sum) * (1 + share * static_cast<double>(c.machines.size()));
  for (const Values& machine_sum : expected.machine_sums) rounded += largest(machine_sum);
  const auto summed = sum(group, c, small_values_of);
  double most = 0;
  for (const Summed& each : summed) {
    ASSERT_FALSE(each.error) << describe(*each.error);
    EXPECT_EQ(each.first(), summed[0].first()) << "all ranks have the same bits";
    for (std::size_t i = 0; i < c.count; ++i) {
      most = std::max(most, std::abs(static_cast<double>(each.first()[i]) - expected.sum[i]));
    }
  }
  constexpr double kFp32 = 1e-6;  // rounding errors of the additions
  EXPECT_LE(most, rounded * share + kFp32);
  EXPECT_GT(most, 0) << "nothing was rounded";
}

// fp16 has 11 bits, int8 127 steps on each side and int4 7. Every value of int4 is a sum over 128
// rotated ones, whose errors of half a step are independent: they add up to sqrt(128) times one.
TEST(HierarchicalAllreduce, RoundsOncePerEncodingWithALossyCodec) {
  for (const auto& machines : {kTwoByTwo, kOneTwoThree, kPair}) {
    expect_rounded({.machines = machines, .codec = "fp16"}, std::ldexp(1, -11));
    expect_rounded({.machines = machines, .codec = "int8"}, 0.5 / 127);
    expect_rounded({.machines = machines, .codec = "int8|zstd(1)"}, 0.5 / 127);
    expect_rounded({.machines = machines, .codec = "int4"}, 0.5 / 7 * std::sqrt(128));
  }
}

TEST(HierarchicalAllreduce, RoundsNothingInsideAMachine) {
  const Case c{.machines = {{Rank{0}, Rank{1}, Rank{2}}}, .codec = "int4"};
  RankGroup group("inproc", 3);
  const Values expected = reference(c, small_values_of).sum;
  for (const Summed& each : sum(group, c, small_values_of)) {
    ASSERT_FALSE(each.error) << describe(*each.error);
    EXPECT_EQ(each.first(), expected);
  }
}

// late_every: [Rank] after how many messages the rank pauses while the others continue.
void expect_sums_of_late_ranks(const Case& c, const std::vector<int>& late_every) {
  RankGroup group("local", rank_count(c.machines));
  const std::vector<Values> expected = in_every_step(c, reference(c, values_of).sum);
  group.run([&](Rank self) {
    LateTransport late(group.at(self), std::chrono::microseconds(200), late_every[self.index()]);
    const Summed summed = sum_on(late, self, c, values_of(self, c.count));
    ASSERT_FALSE(summed.error) << describe(*summed.error);
    EXPECT_EQ(summed.steps, expected) << self.value;
  });
}

// The shared buffers have few slots here, which are reused as soon as permitted. In the last case
// there is one per bucket, which still holds the values of the previous step.
TEST(HierarchicalAllreduce, WritesNoSlotThatIsStillRead) {
  for (const int window : {1, 2, 3, 100}) {
    expect_sums_of_late_ranks(
        {.machines = kOneTwoThree, .bucket_values = 400, .window = window, .steps = 8},
        {1, 4, 7, 3, 6, 2});
  }
}

// Buckets of 3 and 8 grains alternate, so that the rank that owns an offset of the slot changes
// each time.
TEST(HierarchicalAllreduce, WritesNoSlotThatIsStillReadForALongerBucket) {
  constexpr std::size_t kGrain = AllreducePlan::kGrain;
  expect_sums_of_late_ranks({.machines = {{Rank{0}, Rank{1}, Rank{2}}},
                             .count = 11 * kGrain,
                             .bucket_values = 8 * kGrain,
                             .window = 1,
                             .steps = 30},
                            {100, 2, 1});
}

TEST(HierarchicalAllreduce, SendsNoValuesInsideAMachineAfterTheFirstStep) {
  const auto sent = [](int steps) {
    const Case c{.machines = {{Rank{0}, Rank{1}}}, .steps = steps};
    RankGroup group("inproc", 2);
    std::uint64_t bytes = 0;
    group.run([&](Rank self) {
      CountingTransport counted(group.at(self), 2);
      EXPECT_FALSE(sum_on(counted, self, c, values_of(self, c.count)).error);
      if (self.value == 0) bytes = counted.payload_bytes()[1];
    });
    return bytes;
  };
  EXPECT_GT(sent(1), 10'000 * sizeof(float) / 2);
  EXPECT_EQ(sent(4), sent(1));
}

// [machine] payload bytes that its ranks send to others.
std::vector<std::uint64_t> uplink_bytes(const Case& c) {
  const int ranks = rank_count(c.machines);
  RankGroup group("inproc", ranks);
  const AllreducePlan plan(c.machines, c.count, c.bucket_values);
  std::vector<std::uint64_t> bytes(c.machines.size(), 0);
  std::mutex mutex;
  group.run([&](Rank self) {
    CountingTransport counted(group.at(self), ranks);
    const Summed summed = sum_on(counted, self, c, values_of(self, c.count));
    EXPECT_FALSE(summed.error);
    const std::lock_guard lock(mutex);
    for (Rank to{0}; to.value < ranks; ++to.value) {
      if (plan.machine_of(to) != plan.machine_of(self)) {
        bytes[plan.machine_of(self)] += counted.payload_bytes()[to.index()];
      }
    }
  });
  return bytes;
}

TEST(HierarchicalAllreduce, SendsAsManyBytesAsTheFormulaSays) {
  // Divisible into parts of whole blocks, for which the formula 2 (H - 1) / H is exact.
  const std::size_t count = 3 * 2 * 3 * 8 * AllreducePlan::kGrain;
  const std::vector<std::pair<std::string, double>> codecs = {
      {"none", 4.0}, {"fp16", 2.0}, {"int8", 132.0 / 128}, {"int4", 68.0 / 128}};
  for (const auto& [codec, bytes_per_value] : codecs) {
    const double all = static_cast<double>(count) * bytes_per_value;
    for (const auto bytes : uplink_bytes({kTwoByTwo, count, count, 4, codec})) {
      EXPECT_EQ(static_cast<double>(bytes), all) << codec;
    }
    for (const auto bytes : uplink_bytes({kOneTwoThree, count, count / 6, 4, codec})) {
      EXPECT_EQ(static_cast<double>(bytes), all * 4 / 3) << codec;
    }
  }
}

TEST(HierarchicalAllreduce, RefusesAnotherNumberOfValues) {
  RankGroup group("inproc", 2);
  std::vector<Summed> summed(2);
  group.run([&](Rank self) {
    const std::size_t count = self.value == 0 ? 100 : 60;
    summed[self.index()] =
        sum_on(group.at(self), self, {.machines = kPair}, values_of(self, count));
  });
  ASSERT_TRUE(summed[0].error);
  EXPECT_EQ(summed[0].error->code, ErrorCode::kCorrupt) << describe(*summed[0].error);
  EXPECT_TRUE(summed[1].error);
}

TEST(HierarchicalAllreduce, RefusesMoreBucketsThanFramesCanNumber) {
  const auto transports = make_inproc_transports(1);
  FrameLink link(*transports[0], Rank{0}, 1, 2);
  const auto codec = make_codec("none");
  CodecEncoder encoder(**codec);
  const AllreducePlan plan({{Rank{0}}}, (kBucketsMax + 1) * AllreducePlan::kGrain, 1);
  const auto allreduce =
      HierarchicalAllreduce::make(link, Rank{0}, AllreduceId{}, plan, encoder, {});
  ASSERT_FALSE(allreduce.ok());
  EXPECT_EQ(allreduce.error().code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace motley

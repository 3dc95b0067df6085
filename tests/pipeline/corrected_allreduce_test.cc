// All-reduces with momentum correction over machines, compared with a straightforward
// implementation: each machine has a velocity and a residual; the velocity of sent values is
// cleared.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "comm/frames/frame_link.h"
#include "pipeline/collectives/gradient_reducer.h"
#include "tests/support/rank_group.h"

namespace motley {
namespace {

using Values = std::vector<float>;

constexpr std::size_t kCount = 300;  // one bucket
constexpr double kDensity = 0.05;
constexpr std::size_t kSent = 15;
constexpr float kMomentum = 0.9F;
constexpr int kSteps = 12;

Values gradient_of(Rank rank, std::int64_t step) {
  Values values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    values[i] = std::sin(static_cast<float>(i * 7 + rank.index() * 131) +
                         static_cast<float>(step) * 0.3F * static_cast<float>(i % 5));
  }
  return values;
}

Values sum_of(const std::vector<Values>& terms) {
  Values sum(kCount, 0.0F);
  for (const Values& term : terms) std::ranges::transform(sum, term, sum.begin(), std::plus<>{});
  return sum;
}

struct Machine {
  Values velocity = Values(kCount, 0.0F);
  Values unsent = Values(kCount, 0.0F);

  Values correct(const Values& gradient) {
    for (std::size_t i = 0; i < kCount; ++i) velocity[i] = kMomentum * velocity[i] + gradient[i];
    return velocity;
  }

  // Selects the largest of all unsent values.
  Values send(const Values& corrected) {
    for (std::size_t i = 0; i < kCount; ++i) unsent[i] += corrected[i];
    std::vector<std::size_t> places(kCount);
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::ranges::sort(places, std::greater<>{}, [&](std::size_t i) { return std::abs(unsent[i]); });
    Values sent(kCount, 0.0F);
    for (const std::size_t i : std::span(places).first(kSent)) {
      sent[i] = unsent[i];
      unsent[i] = 0;
      velocity[i] = 0;
    }
    return sent;
  }
};

// The results of a rank after each step, [step - 1].
std::vector<Values> summed(RankGroup& group, const ProcessGroup& group_members, double clip = 0) {
  std::vector<std::vector<Values>> all(static_cast<std::size_t>(group.size()));
  group.run([&](Rank self) {
    FrameLink link(group.at(self), self, 1, 2);
    const CompressorOptions options{.chain = "topk(0.05)", .momentum = kMomentum};
    const auto reducer = std::move(GradientReducer::make(link, self, options, 20, clip)).value();
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      Values values = gradient_of(self, step);
      ASSERT_TRUE(reducer->begin(step, {{AllreduceId{}, group_members, values}}).ok());
      reducer->set_ready(AllreduceId{}, 0);
      ASSERT_TRUE(reducer->wait(AllreduceId{}).ok());
      all[self.index()].push_back(values);
    }
  });
  for (const auto& each : all) EXPECT_EQ(each, all.front()) << "ranks hold different sums";
  return all.front();
}

// Two machines send each other their selected values.
TEST(CorrectedAllreduce, OfTwoMachinesIsWhatBothSend) {
  RankGroup group("inproc", 2);
  const std::vector<Values> sums = summed(group, {{{Rank{0}}, {Rank{1}}}, {}});
  Machine first;
  Machine second;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const Values one = first.send(first.correct(gradient_of(Rank{0}, step)));
    const Values other = second.send(second.correct(gradient_of(Rank{1}, step)));
    EXPECT_EQ(sums[static_cast<std::size_t>(step - 1)], sum_of({one, other})) << step;
  }
}

// With three machines the owner adds the others' values to its own corrected gradient, and selects
// from the sum.
TEST(CorrectedAllreduce, OfThreeMachinesIsWhatTheOwnerSends) {
  RankGroup group("inproc", 3);
  // With such unequal links all parts except the first machine's are empty.
  const ProcessGroup group_members{{{Rank{0}}, {Rank{1}}, {Rank{2}}}, {1'000'000'000, 1, 1}};
  const std::vector<Values> sums = summed(group, group_members);
  Machine owner;
  Machine second;
  Machine third;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const Values corrected = sum_of({owner.correct(gradient_of(Rank{0}, step)),
                                     second.send(second.correct(gradient_of(Rank{1}, step))),
                                     third.send(third.correct(gradient_of(Rank{2}, step)))});
    EXPECT_EQ(sums[static_cast<std::size_t>(step - 1)], owner.send(corrected)) << step;
  }
}

TEST(CorrectedAllreduce, ClipsWhatEachRankGives) {
  RankGroup group("inproc", 2);
  const std::vector<Values> sums = summed(group, {{{Rank{0}}, {Rank{1}}}, {}}, /*clip=*/2);
  Machine machines[2];
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    std::vector<Values> sent;
    for (Rank rank{0}; rank.value < 2; ++rank.value) {
      Values gradient = gradient_of(rank, step);
      double norm2 = 0;
      for (const float value : gradient) norm2 += static_cast<double>(value) * value;
      ASSERT_GT(norm2, 4);
      for (float& value : gradient) value *= static_cast<float>(2 / std::sqrt(norm2));
      Machine& machine = machines[rank.index()];
      sent.push_back(machine.send(machine.correct(gradient)));
    }
    const Values expected = sum_of(sent);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_NEAR(sums[static_cast<std::size_t>(step - 1)][i], expected[i], 1e-5) << step;
    }
  }
}

}  // namespace
}  // namespace motley

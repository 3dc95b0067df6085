#include "pipeline/collectives/gradient_reducer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/property.h"
#include "tests/support/rank_group.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr double kTimeout_s = 5;

const ProcessGroup kOneTwo = {{{Rank{0}}, {Rank{1}, Rank{2}}}, {}};
const ProcessGroup kAllThree = {{{Rank{0}, Rank{2}}, {Rank{1}}}, {}};

float value_of(Rank rank, std::size_t i, std::int64_t step) {
  return static_cast<float>((i * 7 + rank.index() * 31 + static_cast<std::size_t>(step)) % 101);
}

// Small integers: their sums are exact in any order.
float sum_of(const ProcessGroup& group_members, std::size_t i, std::int64_t step) {
  float sum = 0;
  for (const auto& members : group_members.machines) {
    for (const Rank rank : members) sum += value_of(rank, i, step);
  }
  return sum;
}

std::vector<float> not_yet_written(std::size_t count) {
  return std::vector<float>(count, std::numeric_limits<float>::quiet_NaN());
}

// Writes the values from the last to the first, as a backward does, and advances the watermark
// every few values.
void write_backwards(GradientReducer& reducer,
                     const AllreduceId& id,
                     std::vector<float>& values,
                     std::size_t stride,
                     Rank self,
                     std::int64_t step) {
  for (std::size_t end = values.size(); end > 0;) {
    const std::size_t first = end - std::min(stride, end);
    for (std::size_t i = first; i < end; ++i) values[i] = value_of(self, i, step);
    reducer.set_ready(id, first);
    end = first;
  }
  reducer.set_ready(id, 0);
}

RC_GTEST_PROP(GradientReducer, SumsWhatIsFinalWhileTheRestIsWritten, ()) {
  const auto counts = *rc::gen::container<std::vector<std::size_t>>(
      2, rc::gen::inRange<std::size_t>(0, 5 * kBucketValues));
  const auto strides = *rc::gen::container<std::vector<std::size_t>>(
      3, rc::gen::inRange<std::size_t>(1000, 3 * kBucketValues));
  const AllreduceId second{.chunk = ChunkId{1}};
  const AllreduceId first{.chunk = ChunkId{0}};
  RankGroup group("inproc", 3);
  std::vector<int> wrong(3, 0);
  group.run([&](Rank self) {
    FrameLink link(group.at(self), self, 1, 2);
    auto reducer = GradientReducer::make(link, self, {}, kTimeout_s);
    for (std::int64_t step = 1; step <= 2; ++step) {
      std::vector<float> of_second = not_yet_written(counts[0]);
      std::vector<float> of_first = not_yet_written(counts[1]);
      const auto begun =
          (*reducer)->begin(step, {{second, kOneTwo, of_second}, {first, kAllThree, of_first}});
      if (!begun.ok()) ++wrong[self.index()];
      write_backwards(**reducer, second, of_second, strides[self.index()], self, step);
      write_backwards(**reducer, first, of_first, strides[self.index()], self, step);
      for (const AllreduceId& id : {second, first}) {
        if (!(*reducer)->wait(id).ok()) ++wrong[self.index()];
      }
      for (std::size_t i = 0; i < of_second.size(); ++i) {
        wrong[self.index()] += of_second[i] != sum_of(kOneTwo, i, step) ? 1 : 0;
      }
      for (std::size_t i = 0; i < of_first.size(); ++i) {
        wrong[self.index()] += of_first[i] != sum_of(kAllThree, i, step) ? 1 : 0;
      }
    }
  });
  RC_ASSERT(wrong == std::vector<int>(3, 0));
}

TEST(GradientReducer, SendsWhatIsFinalBeforeTheRestIs) {
  RankGroup group("inproc", 2);
  const ProcessGroup pair = {{{Rank{0}}, {Rank{1}}}, {}};
  std::vector<float> values(2 * kBucketValues, 1);
  std::vector<float> others(2 * kBucketValues, 2);
  FrameLink link(group.at(Rank{0}), Rank{0}, 1, 2);
  FrameLink other_link(group.at(Rank{1}), Rank{1}, 1, 2);
  auto reducer = GradientReducer::make(link, Rank{0}, {}, kTimeout_s);
  auto other = GradientReducer::make(other_link, Rank{1}, {}, kTimeout_s);
  ASSERT_TRUE((*reducer)->begin(1, {{AllreduceId{}, pair, values}}).ok());
  ASSERT_TRUE((*other)->begin(1, {{AllreduceId{}, pair, others}}).ok());
  (*other)->set_ready(AllreduceId{}, 0);
  (*reducer)->set_ready(AllreduceId{}, kBucketValues);
  const auto half_B = kBucketValues * sizeof(float);
  const Deadline deadline = Deadline::after_s(kTimeout_s);
  while (link.wire_bytes() < half_B && !deadline.passed()) std::this_thread::yield();
  EXPECT_GE(link.wire_bytes(), half_B) << "of the last bucket";
  EXPECT_LT(link.wire_bytes(), 2 * half_B) << "the first bucket is not final";
  (*reducer)->set_ready(AllreduceId{}, 0);
  EXPECT_TRUE((*reducer)->wait(AllreduceId{}).ok());
  EXPECT_TRUE((*other)->wait(AllreduceId{}).ok());
  EXPECT_EQ(values, std::vector<float>(2 * kBucketValues, 3));
}

// The results plus the ranks' residuals equal the sum of all gradients.
TEST(GradientReducer, KnowsWhatItsCompressedMessagesLeftOut) {
  constexpr std::size_t kCount = 3000;
  const ProcessGroup pair = {{{Rank{0}}, {Rank{1}}}, {}};
  RankGroup group("inproc", 2);
  std::vector<std::vector<float>> residuals(2, std::vector<float>(kCount, 0));
  std::vector<std::vector<float>> sums(2);
  group.run([&](Rank self) {
    FrameLink link(group.at(self), self, 1, 2);
    auto reducer = GradientReducer::make(link, self, {.chain = "int4"}, kTimeout_s);
    std::vector<float>& values = sums[self.index()];
    for (std::size_t i = 0; i < kCount; ++i) values.push_back(value_of(self, i, 1));
    ASSERT_TRUE((*reducer)->begin(1, {{AllreduceId{}, pair, values}}).ok());
    (*reducer)->set_ready(AllreduceId{}, 0);
    ASSERT_TRUE((*reducer)->wait(AllreduceId{}).ok());
    (*reducer)->add_feedback(FeedbackKind::kResidual, AllreduceId{}, residuals[self.index()]);
  });
  float most = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    most = std::max(most, std::abs(residuals[0][i]));
    EXPECT_NEAR(sums[0][i] + residuals[0][i] + residuals[1][i], sum_of(pair, i, 1), 1e-3) << i;
  }
  EXPECT_GT(most, 0.1F) << "nothing was left out";
}

TEST(GradientReducer, EndsAtOnceInMidStep) {
  RankGroup group("inproc", 2);
  FrameLink link(group.at(Rank{0}), Rank{0}, 1, 2);
  for (const std::size_t first : {std::size_t{0}, std::size_t{500}}) {
    std::vector<float> values(1000);
    auto reducer = GradientReducer::make(link, Rank{0}, {}, /*stall_timeout=*/3600);
    ASSERT_TRUE((*reducer)->begin(1, {{AllreduceId{}, {{{Rank{0}}, {Rank{1}}}, {}}, values}}).ok());
    (*reducer)->set_ready(AllreduceId{}, first);
  }
}

TEST(GradientReducer, GivesEveryWaiterTheErrorOfTheFirstSumThatFailed) {
  RankGroup group("inproc", 2);
  group.destroy(Rank{1});
  FrameLink link(group.at(Rank{0}), Rank{0}, 1, 2);
  const ProcessGroup pair = {{{Rank{0}}, {Rank{1}}}, {}};
  std::vector<float> values(1000);
  std::vector<float> tied(100);
  const AllreduceId tied_id{FrameKind::kTiedGradient, {}};
  auto reducer = GradientReducer::make(link, Rank{0}, {}, kTimeout_s);
  ASSERT_TRUE((*reducer)->begin(1, {{AllreduceId{}, pair, values}, {tied_id, pair, tied}}).ok());
  for (const AllreduceId& id : {AllreduceId{}, tied_id}) (*reducer)->set_ready(id, 0);
  for (const AllreduceId& id : {AllreduceId{}, tied_id}) {
    const auto span = (*reducer)->wait(id);
    ASSERT_FALSE(span.ok());
    EXPECT_EQ(span.error().code, ErrorCode::kPeer) << describe(span.error());
    EXPECT_THAT(span.error().what, HasSubstr("all-reduce of chunk 0, bucket 1 of 1"));
  }
}

}  // namespace
}  // namespace motley

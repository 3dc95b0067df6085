#include "training/vote.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace motley {
namespace {

using Votes = std::vector<std::vector<std::byte>>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr bool kForStep = true;
constexpr bool kForEvaluation = false;

// Two ranks, three layers, the loss on the second rank; tests change what they are about.
struct TwoVotes {
  Vote first{0, 0, {{0, 1.5}, {1, 2.5}}};
  Vote second{12, 30, {{2, 4.0}}};

  [[nodiscard]] Votes encoded() const { return {encode_vote(first), encode_vote(second)}; }

  [[nodiscard]] Result<Tally> tally(bool for_step = kForStep) const {
    return tally_votes(encoded(), 3, for_step);
  }
};

void expect_corrupt(const Result<Tally>& tally, const std::string& what, const std::string& cause) {
  ASSERT_FALSE(tally.ok());
  EXPECT_EQ(tally.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(tally.error().what, what);
  EXPECT_EQ(tally.error().cause, cause);
}

std::vector<std::byte> bits(const Tally& tally) {
  std::vector<std::byte> bytes(2 * sizeof(double));
  std::memcpy(bytes.data(), &tally.squared_norm, sizeof(double));
  std::memcpy(bytes.data() + sizeof(double), &tally.loss_sum, sizeof(double));
  return bytes;
}

TEST(Vote, SumsWhatEveryRankGives) {
  const auto tally = TwoVotes{}.tally();
  ASSERT_TRUE(tally.ok()) << describe(tally.error());
  EXPECT_EQ(tally->tokens, 12);
  EXPECT_EQ(tally->loss_sum, 30);
  EXPECT_EQ(tally->squared_norm, 8);
  EXPECT_TRUE(tally->finite);
}

TEST(Vote, NeedsNoLayersForAnEvaluation) {
  TwoVotes votes;
  votes.first.layers = votes.second.layers = {};
  const auto tally = votes.tally(kForEvaluation);
  ASSERT_TRUE(tally.ok()) << describe(tally.error());
  EXPECT_EQ(tally->loss_sum, 30);
}

TEST(Vote, TakesNoMoreRoomThanAnnounced) {
  Vote vote;
  for (int layers = 0; layers < 5; ++layers) {
    EXPECT_EQ(encode_vote(vote).size(), vote_bytes_max(layers));
    vote.layers.push_back({layers, 1});
  }
}

RC_GTEST_PROP(Vote, HasTheSameBitsWhoeverHoldsTheLayers, ()) {
  const auto norms = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<double>>(rc::gen::map<int>([](int n) { return n * 1e-3; })));
  const auto layers = static_cast<int>(norms.size());
  const Vote loss{*rc::gen::inRange(1, 1000), *rc::gen::inRange(0, 1000) / 7.0, {}};
  const auto dealt_to = [&](int rank_count) {
    std::vector<Vote> votes(static_cast<std::size_t>(rank_count));
    votes[*rc::gen::inRange<std::size_t>(0, votes.size())] = loss;
    for (int layer = 0; layer < layers; ++layer) {
      Vote& owner = votes[*rc::gen::inRange<std::size_t>(0, votes.size())];
      // Not always in order: a rank may hold chunks from both ends.
      const bool first = *rc::gen::arbitrary<bool>();
      owner.layers.insert(first ? owner.layers.begin() : owner.layers.end(),
                          {layer, norms[static_cast<std::size_t>(layer)]});
    }
    Votes encoded;
    for (const Vote& vote : votes) encoded.push_back(encode_vote(vote));
    return tally_votes(encoded, layers, kForStep);
  };
  const auto alone = dealt_to(1);
  const auto together = dealt_to(*rc::gen::inRange(1, 6));
  RC_ASSERT(alone.ok() && together.ok());
  RC_ASSERT(bits(*alone) == bits(*together));
}

TEST(Vote, SkipsTheStepWhenAnythingIsNotFinite) {
  for (const double bad : {kInf, -kInf, kNan}) {
    TwoVotes bad_norm;
    bad_norm.first.layers[1].squared_norm = bad;
    TwoVotes bad_loss;
    bad_loss.second.loss_sum = bad;
    for (const auto& tally : {bad_norm.tally(), bad_loss.tally()}) {
      ASSERT_TRUE(tally.ok()) << describe(tally.error());
      EXPECT_FALSE(tally->finite) << bad;
    }
  }
}

TEST(Vote, SkipsTheStepWhenTheSumOverflows) {
  TwoVotes votes;
  votes.first.layers[0].squared_norm = votes.second.layers[0].squared_norm = 1.7e308;
  ASSERT_TRUE(votes.tally().ok());
  EXPECT_FALSE(votes.tally()->finite);
}

TEST(Vote, IsMalformedAtEveryOtherLength) {
  const Votes good = TwoVotes{}.encoded();
  for (std::size_t bytes = 0; bytes < good[0].size() + 30; ++bytes) {
    Votes votes = good;
    votes[0].resize(bytes);
    if (bytes == good[0].size()) continue;
    const bool short_head = bytes < vote_bytes_max(0);
    expect_corrupt(tally_votes(votes, 3, kForStep), "the vote of rank 0 is malformed",
                   short_head ? "it is too short" : "its length does not fit its content");
  }
}

TEST(Vote, IsMalformedWhenItAnnouncesMoreLayersThanItHas) {
  Votes votes = TwoVotes{}.encoded();
  constexpr std::size_t kCountAt = 16;
  std::memset(votes[1].data() + kCountAt, 0xFF, 4);
  expect_corrupt(tally_votes(votes, 3, kForStep), "the vote of rank 1 is malformed",
                 "its length does not fit its content");
}

TEST(Vote, IsMalformedWithANegativeNumberOfTokens) {
  TwoVotes votes;
  votes.second.tokens = -1;
  expect_corrupt(votes.tally(), "the vote of rank 1 is malformed",
                 "its length does not fit its content");
}

TEST(Vote, IsMalformedWithALayerOutOfRange) {
  for (const int layer : {3, 1'000'000, -1}) {
    TwoVotes votes;
    votes.second.layers[0].layer = layer;
    expect_corrupt(votes.tally(), "the vote of rank 1 is malformed",
                   "it names a layer that does not exist");
  }
}

TEST(Vote, IsMalformedWhenItRepeatsALayer) {
  TwoVotes within;
  within.first.layers.push_back({0, 9});
  expect_corrupt(within.tally(), "the vote of rank 0 is malformed", "it repeats a layer");
  TwoVotes between;
  between.second.layers.push_back({1, 9});
  expect_corrupt(between.tally(), "the vote of rank 1 is malformed", "it repeats a layer");
}

TEST(Vote, MissesALayerThatNobodyHolds) {
  TwoVotes votes;
  votes.first.layers.pop_back();
  expect_corrupt(votes.tally(), "no rank voted for layer 1", "there are votes of 2 ranks");
}

TEST(Vote, MissesTheLoss) {
  TwoVotes votes;
  votes.second.tokens = 0;
  expect_corrupt(votes.tally(kForStep), "no rank voted a loss", "there are votes of 2 ranks");
  expect_corrupt(votes.tally(kForEvaluation), "no rank voted a loss", "there are votes of 2 ranks");
}

}  // namespace
}  // namespace motley

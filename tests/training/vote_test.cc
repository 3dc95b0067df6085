#include "training/vote/vote.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/wire_sizes.h"

namespace motley {
namespace {

using Votes = std::vector<std::vector<std::byte>>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Two ranks, three layers, the loss on the second rank; tests change single fields.
struct TwoVotes {
  VoteRules rules{.layer_count = 3, .copies = {}};
  Vote first{0, 0, {}, {{0, 1.5}, {1, 2.5}}, {1e-3, 0.1, 0.05}, {}};
  Vote second{12, 30, 9, {{2, 4.0}}, {}, {}};

  [[nodiscard]] Votes encoded() const { return {encode_vote(first), encode_vote(second)}; }

  [[nodiscard]] Result<Tally> tally(VoteKind kind = VoteKind::kStep) const {
    return tally_votes(encoded(), rules, kind);
  }
};

// Chunk 0 on ranks 0 and 1, chunk 1 on ranks 1 and 2, the tied parameter on 0 and 2; one layer.
struct ThreeCopies {
  VoteRules rules{1,
                  {{ChunkId{0}, {Rank{0}, Rank{1}}},
                   {ChunkId{1}, {Rank{1}, Rank{2}}},
                   {{}, {Rank{0}, Rank{2}}}}};
  std::vector<Vote> votes = {{1, 1, {}, {{0, 1}}, {1, 1, 1}, {10, 30}},
                             {0, 0, {}, {}, {}, {10, 20}},
                             {0, 0, {}, {}, {}, {20, 30}}};

  [[nodiscard]] Result<Tally> tally(VoteKind kind = VoteKind::kStep) const {
    Votes encoded;
    for (const Vote& vote : votes) encoded.push_back(encode_vote(vote));
    return tally_votes(encoded, rules, kind);
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
  std::memcpy(bytes.data(), &tally.islands.front().squared_norm, sizeof(double));
  std::memcpy(bytes.data() + sizeof(double), &tally.loss_sum, sizeof(double));
  return bytes;
}

TEST(Vote, SumsWhatEveryRankGives) {
  const auto tally = TwoVotes{}.tally();
  ASSERT_TRUE(tally.ok()) << describe(tally.error());
  EXPECT_EQ(tally->count, 12);
  EXPECT_EQ(tally->loss_sum, 30);
  EXPECT_EQ(tally->correct, 9);
  EXPECT_EQ(tally->islands.front().squared_norm, 8);
  EXPECT_TRUE(tally->finite);
}

// Two islands, each with both layers; the second one on two ranks.
TEST(Vote, CountsEachIslandForItself) {
  const VoteRules rules{.layer_count = 2, .copies = {}, .corrected = {}, .islands = {0, 1, 1}};
  const Vote one{8, 20, 6, {{0, 1.5}, {1, 2.5}}, {1e-3, 0.1, 0.05}, {}};
  const Vote other_first{0, 0, {}, {{0, 8}}, {}, {}};
  const Vote other_last{4, 12, 2, {{1, 16}}, {}, {}};
  const auto tally =
      tally_votes({encode_vote(one), encode_vote(other_first), encode_vote(other_last)}, rules,
                  VoteKind::kStep);
  ASSERT_TRUE(tally.ok()) << describe(tally.error());
  EXPECT_EQ(tally->count, 12);
  EXPECT_EQ(tally->loss_sum, 32);
  EXPECT_EQ(tally->correct, 8);
  ASSERT_EQ(tally->islands.size(), 2U);
  EXPECT_EQ(tally->islands[0].count, 8);
  EXPECT_EQ(tally->islands[0].squared_norm, 4);
  EXPECT_EQ(tally->islands[1].count, 4);
  EXPECT_EQ(tally->islands[1].squared_norm, 24);
  expect_corrupt(tally_votes({encode_vote(one), encode_vote(other_first), encode_vote({})}, rules,
                             VoteKind::kStep),
                 "no rank voted for layer 1", "there are votes of 3 ranks");
}

TEST(Vote, NeedsNoLayersForAnEvaluation) {
  TwoVotes votes;
  votes.first.layers = votes.second.layers = {};
  votes.first.factors = {};
  const auto tally = votes.tally(VoteKind::kEvaluation);
  ASSERT_TRUE(tally.ok()) << describe(tally.error());
  EXPECT_EQ(tally->loss_sum, 30);
}

// Two ranks with the loss and one without.
struct ThreeEvaluations {
  VoteRules rules{.layer_count = 1, .copies = {}};
  std::vector<Vote> votes = {
      Vote{}, Vote{.count = 12, .loss_sum = 30, .predictions = PredictionCounts{12, 5, 8}},
      Vote{.count = 4, .loss_sum = 2, .predictions = PredictionCounts{4, 1, 3}}};

  [[nodiscard]] Result<Tally> tally(VoteKind kind = VoteKind::kEvaluation) const {
    Votes encoded;
    for (const Vote& vote : votes) encoded.push_back(encode_vote(vote));
    return tally_votes(encoded, rules, kind);
  }
};

TEST(Vote, AddsThePredictionsOfAnEvaluation) {
  ThreeEvaluations three;
  const auto tally = three.tally();
  ASSERT_TRUE(tally.ok()) << describe(tally.error());
  EXPECT_EQ(tally->predictions, (PredictionCounts{16, 6, 11}));
  three.votes[2].predictions->top_five.reset();
  EXPECT_EQ(three.tally()->predictions, (PredictionCounts{16, 6, std::nullopt}));
  three.votes[2].predictions.reset();
  EXPECT_EQ(three.tally()->predictions, std::nullopt) << "a rank with terms did not count them";
  three.votes[2].count = 0;
  EXPECT_EQ(three.tally()->predictions, (PredictionCounts{12, 5, 8}));
}

TEST(Vote, OfAnEvaluationTakesNoMoreRoomThanAStep) {
  const ThreeEvaluations three;
  EXPECT_LE(encode_vote(three.votes[1]).size(), vote_bytes_max(three.rules));
}

TEST(Vote, WithImpossiblePredictionsIsMalformed) {
  for (const PredictionCounts counts :
       {PredictionCounts{4, 5, 5}, PredictionCounts{4, 3, 2}, PredictionCounts{4, 3, 5},
        PredictionCounts{-1, 0, 0}, PredictionCounts{4, -1, 0}, PredictionCounts{4, 5, {}},
        PredictionCounts{std::int64_t{1} << 41, 0, 0}}) {
    ThreeEvaluations three;
    three.votes[2].predictions = counts;
    const auto tally = three.tally();
    ASSERT_FALSE(tally.ok()) << counts.targets << " " << counts.first;
    EXPECT_EQ(tally.error().what, "the vote of rank 2 is malformed");
  }
  TwoVotes step;
  step.second.predictions = PredictionCounts{12, 5, 8};
  expect_corrupt(step.tally(), "the vote of rank 1 is malformed",
                 "only an evaluation counts predictions");
}

TEST(Vote, TakesNoMoreRoomThanAnnounced) {
  Vote vote;
  vote.factors = {1, 1, 1};
  VoteRules rules;
  for (int layers = 0; layers < 5; ++layers) {
    EXPECT_EQ(encode_vote(vote).size(), vote_bytes_max(rules));
    vote.layers.push_back({layers, 1});
    vote.copy_hashes.push_back(1);
    rules.layer_count = layers + 1;
    rules.copies.emplace_back();
  }
}

RC_GTEST_PROP(Vote, HasTheSameBitsWhoeverHoldsTheLayers, ()) {
  const auto norms = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<double>>(rc::gen::map<int>([](int n) { return n * 1e-3; })));
  const auto layers = static_cast<int>(norms.size());
  const Vote loss{static_cast<double>(*rc::gen::inRange(1, 1000)),
                  *rc::gen::inRange(0, 1000) / 7.0,
                  {},
                  {},
                  {},
                  {}};
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
    votes.front().factors = {1, 1, 1};
    Votes encoded;
    for (const Vote& vote : votes) encoded.push_back(encode_vote(vote));
    return tally_votes(encoded, {.layer_count = layers, .copies = {}}, VoteKind::kStep);
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

TEST(Vote, EndsTheSessionForAllOnceOneRankSaysSo) {
  TwoVotes votes;
  EXPECT_FALSE(votes.tally()->ends);
  votes.second.ends = true;
  EXPECT_TRUE(votes.tally()->ends);
  votes.first = {0, 0, {}, {}, {}};
  votes.second.layers = {};
  expect_corrupt(votes.tally(VoteKind::kEvaluation), "the vote of rank 1 is malformed",
                 "an evaluation cannot end a session");
}

TEST(Vote, CarriesThatACheckpointIsDueByTheClockOfRank0) {
  TwoVotes votes;
  EXPECT_FALSE(votes.tally()->saves);
  votes.first.saves = true;
  EXPECT_TRUE(votes.tally()->saves);
  EXPECT_FALSE(votes.tally()->ends);
  votes.first.ends = true;
  EXPECT_TRUE(votes.tally()->saves && votes.tally()->ends);
  Vote evaluation;
  evaluation.saves = true;
  votes.first = evaluation;
  expect_corrupt(votes.tally(VoteKind::kEvaluation), "the vote of rank 0 is malformed",
                 "only rank 0 may request a checkpoint, with a step");
}

TEST(Vote, LetsNoOtherRankAskForACheckpoint) {
  TwoVotes votes;
  votes.second.saves = true;
  expect_corrupt(votes.tally(), "the vote of rank 1 is malformed",
                 "only rank 0 may request a checkpoint, with a step");
}

TEST(Vote, SaysNothingElseOfTheSession) {
  constexpr std::size_t kFollows = 36;  // the offset of the flags, by docs/formats/frame.md
  const TwoVotes two;
  Votes votes = two.encoded();
  for (int bits = 0; bits < 8; ++bits) {
    votes[0][kFollows] = static_cast<std::byte>(bits);
    const auto tally = tally_votes(votes, two.rules, VoteKind::kStep);
    EXPECT_EQ(tally.ok(), bits < 4) << bits;
    if (!tally.ok()) continue;
    EXPECT_EQ(tally->ends, (bits & 1) != 0);
    EXPECT_EQ(tally->saves, (bits & 2) != 0);
  }
}

TEST(Vote, IsMalformedAtEveryOtherLength) {
  const TwoVotes two;
  const Votes good = two.encoded();
  for (std::size_t bytes = 0; bytes < good[0].size() + 30; ++bytes) {
    Votes votes = good;
    votes[0].resize(bytes);
    if (bytes == good[0].size()) continue;
    const bool short_head = bytes < vote_bytes(0, 0, 0);
    expect_corrupt(tally_votes(votes, two.rules, VoteKind::kStep),
                   "the vote of rank 0 is malformed",
                   short_head ? "it is too short" : "its length does not fit its content");
  }
}

TEST(Vote, IsMalformedWhenItAnnouncesMoreLayersThanItHas) {
  const TwoVotes two;
  for (const std::size_t count_at : {24U, 28U, 32U}) {  // of layers, factors, hashes
    Votes votes = two.encoded();
    std::memset(votes[1].data() + count_at, 0xFF, 4);
    expect_corrupt(tally_votes(votes, two.rules, VoteKind::kStep),
                   "the vote of rank 1 is malformed", "its length does not fit its content");
  }
}

TEST(Vote, IsMalformedWithAnImpossibleNumberOfTerms) {
  for (const double count : {-1.0, -1e-300, 0x1p41, HUGE_VAL, std::nan("")}) {
    TwoVotes votes;
    votes.second.count = count;
    votes.second.correct = {};
    expect_corrupt(votes.tally(), "the vote of rank 1 is malformed",
                   "its loss has an impossible number of terms");
  }
}

TEST(Vote, AddsUpWeights) {
  TwoVotes votes;
  votes.first.count = 0.375;
  votes.first.correct = 0.25;
  votes.second.count = 1.5;
  votes.second.correct = 1.5;
  const auto tally = votes.tally();
  ASSERT_TRUE(tally.ok());
  EXPECT_EQ(tally->count, 1.875);
  EXPECT_EQ(tally->correct, 1.75);
}

TEST(Vote, TellsNothingOfWhatIsRightUnlessEveryLossCounts) {
  TwoVotes votes;
  votes.first.count = 4;
  ASSERT_TRUE(votes.tally().ok());
  EXPECT_FALSE(votes.tally()->correct);
  votes.first.correct = 4;
  EXPECT_EQ(votes.tally()->correct, 13);
}

TEST(Vote, IsMalformedWithMoreRightThanThereIs) {
  for (const double right : {12.5, 13.0, -2.0, -0.5, std::nan("")}) {
    TwoVotes votes;
    votes.second.correct = right;
    expect_corrupt(votes.tally(), "the vote of rank 1 is malformed",
                   "it has more correct predictions than predictions");
  }
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

// A loss may find no target in a batch.
TEST(Vote, MayHaveNoTokens) {
  TwoVotes votes;
  votes.second.count = 0;
  votes.second.loss_sum = 0;
  votes.second.correct = {};
  const auto step = votes.tally();
  ASSERT_TRUE(step.ok()) << describe(step.error());
  EXPECT_EQ(step->count, 0);
  EXPECT_TRUE(step->finite);
  votes.first.factors = {};
  const auto evaluation = votes.tally(VoteKind::kEvaluation);
  ASSERT_TRUE(evaluation.ok()) << describe(evaluation.error());
  EXPECT_EQ(evaluation->count, 0);
}

TEST(Vote, TakesTheFactorsOfRank0) {
  const auto tally = TwoVotes{}.tally();
  ASSERT_TRUE(tally.ok()) << describe(tally.error());
  EXPECT_EQ(tally->factors, (std::vector<double>{1e-3, 0.1, 0.05}));
}

TEST(Vote, IsMalformedWithFactorsThatAreNotTheRanksToGive) {
  TwoVotes of_another;
  of_another.second.factors = {1e-3, 0.1, 0.05};
  expect_corrupt(of_another.tally(), "the vote of rank 1 is malformed",
                 "it has 3 factors instead of 0");
  TwoVotes missing;
  missing.first.factors.pop_back();
  expect_corrupt(missing.tally(), "the vote of rank 0 is malformed",
                 "it has 2 factors instead of 3");
  expect_corrupt(TwoVotes{}.tally(VoteKind::kEvaluation), "the vote of rank 0 is malformed",
                 "it has 3 factors instead of 0");
}

TEST(Vote, FindsCopiesEqual) {
  const auto tally = ThreeCopies{}.tally();
  EXPECT_TRUE(tally.ok()) << describe(tally.error());
}

TEST(Vote, NamesTheCopiesThatDiffer) {
  struct Case {
    std::size_t rank, hash;
    std::string what, cause;
  };

  for (const auto& [rank, hash, what, cause] :
       {Case{1, 0, "chunk 0", "000000000000000a on rank 0; 00000000000000ff on rank 1"},
        Case{2, 0, "chunk 1", "0000000000000014 on rank 1; 00000000000000ff on rank 2"},
        Case{0, 1, "the tied parameter",
             "000000000000001e on rank 2; 00000000000000ff on rank 0"}}) {
    ThreeCopies three;
    three.votes[rank].copy_hashes[hash] = 0xFF;
    const auto tally = three.tally();
    ASSERT_FALSE(tally.ok()) << what;
    EXPECT_EQ(tally.error().code, ErrorCode::kInternal);
    EXPECT_EQ(tally.error().what, "the ranks that have " + what + " have different parameters");
    EXPECT_EQ(tally.error().cause, "their hashes: " + cause);
  }
}

TEST(Vote, IsMalformedWithHashesThatAreNotTheRanksToGive) {
  ThreeCopies missing;
  missing.votes[1].copy_hashes.pop_back();
  expect_corrupt(missing.tally(), "the vote of rank 1 is malformed",
                 "it has 1 hashes of parameters instead of 2");
  ThreeCopies beyond;
  beyond.votes[2].copy_hashes.push_back(1);
  expect_corrupt(beyond.tally(), "the vote of rank 2 is malformed",
                 "it has 3 hashes of parameters instead of 2");
  ThreeCopies evaluated;
  evaluated.votes[0].factors = {};
  expect_corrupt(evaluated.tally(VoteKind::kEvaluation), "the vote of rank 0 is malformed",
                 "it has 2 hashes of parameters instead of 0");
}

}  // namespace
}  // namespace motley

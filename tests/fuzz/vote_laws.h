// The properties of votes. An input has the number of layers, a byte with two flags (whether the
// votes are for a step; whether all ranks hold copies of a chunk), and then votes, each after its
// length in one byte.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/laws.h"
#include "training/vote/vote.h"

namespace motley {

struct VoteInput {
  VoteRules rules;
  bool for_step = false;
  std::vector<std::vector<std::byte>> votes;
};

inline VoteInput vote_input(std::string_view bytes) {
  VoteInput input;
  if (bytes.size() < 2) return input;
  input.rules.layer_count = static_cast<unsigned char>(bytes[0]);
  input.for_step = (bytes[1] & 1) != 0;
  const bool copies = (bytes[1] & 2) != 0;
  for (bytes.remove_prefix(2); !bytes.empty();) {
    const std::size_t length =
        std::min<std::size_t>(static_cast<unsigned char>(bytes[0]), bytes.size() - 1);
    const auto vote = std::as_bytes(std::span(bytes.substr(1, length)));
    input.votes.emplace_back(vote.begin(), vote.end());
    bytes.remove_prefix(1 + length);
  }
  if (!copies) return input;
  CopyGroup& group = input.rules.copies.emplace_back(CopyGroup{ChunkId{0}, {}});
  for (Rank rank{0}; rank.index() < input.votes.size(); ++rank.value) group.ranks.push_back(rank);
  return input;
}

// After its length in one byte.
inline std::string sized(const Vote& vote) {
  const std::vector<std::byte> encoded = encode_vote(vote);
  std::string bytes(1, static_cast<char>(encoded.size()));
  bytes.append(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  return bytes;
}

inline std::string right_votes() {
  std::string bytes = {3, 3};
  for (const Vote& vote :
       {Vote{0, 0, {}, {{0, 1.5}, {1, 2.5}}, {1e-3, 0.1, 0.05}, {7}, false, true},
        Vote{12, 30, 9, {{2, 4.0}}, {}, {7}}, Vote{4, 8.25, {}, {}, {}, {7}, true}}) {
    bytes += sized(vote);
  }
  return bytes;
}

inline std::string right_evaluation() {
  std::string bytes = {3, 0};
  bytes += sized(Vote{});
  bytes += sized(Vote{.count = 12, .loss_sum = 30, .predictions = PredictionCounts{12, 5, 8}});
  bytes += sized(Vote{.count = 4, .loss_sum = 8.25, .predictions = PredictionCounts{4, 4, 4}});
  return bytes;
}

// Parses the output of encode_vote, written from its description and not from its code.
inline Vote read_vote(std::span<const std::byte> bytes) {
  Vote vote;
  std::uint32_t counts[4];
  std::memcpy(&vote.count, bytes.data(), 8);
  std::memcpy(&vote.loss_sum, bytes.data() + 8, 8);
  double correct = 0;
  std::memcpy(&correct, bytes.data() + 16, 8);
  if (correct != -1) vote.correct = correct;
  std::memcpy(counts, bytes.data() + 24, 16);
  vote.layers.resize(counts[0]);
  vote.factors.resize(counts[1]);
  vote.copy_hashes.resize(counts[2]);
  vote.ends = (counts[3] & 1) != 0;
  vote.saves = (counts[3] & 2) != 0;
  const std::byte* at = bytes.data() + 40;
  for (LayerNorm2& layer : vote.layers) {
    std::memcpy(&layer.layer, at, 4);
    std::memcpy(&layer.squared_norm, at + 4, 8);
    at += 12;
  }
  for (double& factor : vote.factors) {
    std::memcpy(&factor, at, 8);
    at += 8;
  }
  for (std::uint64_t& hash : vote.copy_hashes) {
    std::memcpy(&hash, at, 8);
    at += 8;
  }
  if ((counts[3] & 4) == 0) return vote;
  std::int64_t predicted[3];
  std::memcpy(predicted, at, 24);
  vote.predictions = PredictionCounts{predicted[0], predicted[1], std::nullopt};
  if (predicted[2] != -1) vote.predictions->top_five = predicted[2];
  return vote;
}

// The expected sums: losses in the order of ranks, norms in the order of layers.
inline Tally summed(const std::vector<Vote>& votes, int layer_count, bool for_step) {
  Tally tally;
  std::vector<double> norms(static_cast<std::size_t>(layer_count));
  std::optional<double> correct = 0;
  PredictionCounts predicted{0, 0, 0};
  bool is_predicted = false;
  bool is_unpredicted = false;
  for (const Vote& vote : votes) {
    is_predicted = is_predicted || vote.predictions;
    is_unpredicted = is_unpredicted || (vote.count > 0 && !vote.predictions);
    if (vote.predictions) predicted = sum_of(predicted, *vote.predictions);
    const bool is_silent = vote.count > 0 && !vote.correct;
    correct =
        correct && !is_silent ? std::optional(*correct + vote.correct.value_or(0)) : std::nullopt;
    tally.count += vote.count;
    tally.loss_sum += vote.loss_sum;
    tally.ends = tally.ends || vote.ends;
    tally.saves = tally.saves || vote.saves;
    for (const LayerNorm2& layer : vote.layers) {
      norms.at(static_cast<std::size_t>(layer.layer)) = layer.squared_norm;
    }
  }
  tally.correct = correct;
  if (is_predicted && !is_unpredicted) tally.predictions = predicted;
  double& squared_norm = tally.islands.emplace_back().squared_norm;
  for (const double norm : norms) squared_norm += for_step ? norm : 0;
  tally.finite = std::isfinite(squared_norm) && std::isfinite(tally.loss_sum);
  return tally;
}

inline bool same_bits(double a, double b) {
  return std::isnan(a) ? std::isnan(b)
                       : std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

inline bool any_nan(const std::vector<double>& values) {
  return std::ranges::any_of(values, [](double value) { return std::isnan(value); });
}

// Accepted votes are written back as the same bytes and give the same bits when added.
inline std::string wrong_with_votes(std::string_view bytes) {
  const VoteInput input = vote_input(bytes);
  if (input.votes.empty()) return "";
  const VoteKind kind = input.for_step ? VoteKind::kStep : VoteKind::kEvaluation;
  const auto tally = tally_votes(input.votes, input.rules, kind);
  if (!tally.ok()) {
    const bool differ = tally.error().code == ErrorCode::kInternal;
    return wrong_error(tally.error(), {ErrorCode::kCorrupt, ErrorCode::kInternal},
                       differ ? "the ranks that have chunk 0" : "vote");
  }
  std::vector<Vote> votes;
  for (const auto& vote : input.votes) {
    votes.push_back(read_vote(vote));
    if (encode_vote(votes.back()) != vote) return "written and read, and not the same";
  }
  const Tally expected = summed(votes, input.rules.layer_count, input.for_step);
  const bool same =
      tally->count == expected.count && tally->correct == expected.correct &&
      tally->predictions == expected.predictions && tally->ends == expected.ends &&
      tally->saves == expected.saves && tally->finite == expected.finite &&
      same_bits(tally->loss_sum, expected.loss_sum) &&
      same_bits(tally->islands.front().squared_norm, expected.islands.front().squared_norm);
  if (!same) return "summed to something else";
  for (const Vote& vote : votes) {
    if (vote.copy_hashes != votes.front().copy_hashes) return "copies that differ";
  }
  if (input.for_step && tally->factors != votes.front().factors && !any_nan(tally->factors)) {
    return "factors of another rank";
  }
  return tally->count >= 0 ? "" : "fewer than no terms";
}

}  // namespace motley

#include "training/vote/vote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <type_traits>

#include "base/wire_sizes.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little,
              "votes are written as they lie in memory");
constexpr double kCountMax = 0x1p40;  // of one batch; keeps sums in range
constexpr double kNotCounted = -1;    // encodes an absent Vote::correct
constexpr std::int64_t kNotCountedFive = -1;
// Flags of what follows the step, and of counts at the end of an evaluation's vote.
constexpr std::uint32_t kEnds = 1;
constexpr std::uint32_t kSaves = 2;
constexpr std::uint32_t kPredicts = 4;
// The number of targets, of those predicted first and of those in the top five.
constexpr std::size_t kPredictionBytes = 3 * sizeof(std::int64_t);
constexpr std::int64_t kTargetsMax = std::int64_t{1} << 40;

template <class T>
void put(std::vector<std::byte>& bytes, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// REQUIRES: enough bytes.
template <class T>
T take(std::span<const std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return value;
}

Error malformed(Rank rank, const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("the vote of rank {} is malformed", rank.value), cause,
          ""};
}

Error incomplete(const std::string& what, std::size_t ranks) {
  return {ErrorCode::kCorrupt, what, fmt::format("there are votes of {} ranks", ranks),
          "start all ranks with the same version of Motley"};
}

// REQUIRES: kPredictionBytes.
Result<PredictionCounts> decode_predictions(std::span<const std::byte> bytes, Rank rank) {
  PredictionCounts counts;
  counts.targets = take<std::int64_t>(bytes);
  counts.first = take<std::int64_t>(bytes);
  const auto top_five = take<std::int64_t>(bytes);
  if (counts.targets < 0 || counts.targets > kTargetsMax) {
    return malformed(rank, "it has an impossible number of targets");
  }
  if (top_five != kNotCountedFive) counts.top_five = top_five;
  const std::int64_t most = counts.top_five.value_or(counts.targets);
  if (counts.first < 0 || counts.first > most || most > counts.targets) {
    return malformed(rank, "it predicts more targets than there are");
  }
  return counts;
}

Result<Vote> decode_vote(std::span<const std::byte> bytes, Rank rank) {
  const std::size_t size = bytes.size();
  if (size < vote_bytes(0, 0, 0)) return malformed(rank, "it is too short");
  Vote vote;
  vote.count = take<double>(bytes);
  vote.loss_sum = take<double>(bytes);
  const auto correct = take<double>(bytes);
  const std::size_t layers = take<std::uint32_t>(bytes);
  const std::size_t factors = take<std::uint32_t>(bytes);
  const std::size_t copies = take<std::uint32_t>(bytes);
  const auto follows = take<std::uint32_t>(bytes);
  if (follows > (kEnds | kSaves | kPredicts)) {
    return malformed(rank, "its session field is unknown");
  }
  const std::size_t predicted = (follows & kPredicts) != 0 ? kPredictionBytes : 0;
  if (size != vote_bytes(layers, factors, copies) + predicted) {
    return malformed(rank, "its length does not fit its content");
  }
  if (!(vote.count >= 0 && vote.count <= kCountMax)) {
    return malformed(rank, "its loss has an impossible number of terms");
  }
  if (correct != kNotCounted && !(correct >= 0 && correct <= vote.count)) {
    return malformed(rank, "it has more correct predictions than predictions");
  }
  if (correct != kNotCounted) vote.correct = correct;
  vote.ends = (follows & kEnds) != 0;
  vote.saves = (follows & kSaves) != 0;
  for (std::size_t i = 0; i < layers; ++i) {
    const auto layer = static_cast<int>(take<std::uint32_t>(bytes));
    vote.layers.push_back({layer, take<double>(bytes)});
  }
  for (std::size_t i = 0; i < factors; ++i) vote.factors.push_back(take<double>(bytes));
  for (std::size_t i = 0; i < copies; ++i) vote.copy_hashes.push_back(take<std::uint64_t>(bytes));
  if (predicted > 0) {
    MOTLEY_ASSIGN(vote.predictions, decode_predictions(bytes, rank));
  }
  return vote;
}

// Checks that each rank's vote has exactly the parts required of that rank.
Result<void> check_extent(const Vote& vote, Rank rank, const VoteRules& rules, VoteKind kind) {
  const bool is_step = kind == VoteKind::kStep;
  const std::size_t factors = is_step && rank.value == 0 ? kStepFactors : 0;
  const auto copies = static_cast<std::size_t>(std::ranges::count_if(
      rules.copies, [&](const CopyGroup& group) { return holds_copy(group, rank); }));
  const std::size_t hashes = is_step ? copies : 0;
  if (vote.ends && !is_step) return malformed(rank, "an evaluation cannot end a session");
  if (vote.predictions && is_step) {
    return malformed(rank, "only an evaluation counts predictions");
  }
  if (vote.saves && (!is_step || rank.value != 0)) {
    return malformed(rank, "only rank 0 may request a checkpoint, with a step");
  }
  if (vote.factors.size() != factors) {
    return malformed(rank,
                     fmt::format("it has {} factors instead of {}", vote.factors.size(), factors));
  }
  if (vote.copy_hashes.size() != hashes) {
    return malformed(rank, fmt::format("it has {} hashes of parameters instead of {}",
                                       vote.copy_hashes.size(), hashes));
  }
  return {};
}

Result<void> add_norms(const Vote& vote, Rank rank, std::vector<std::optional<double>>& norms) {
  for (const LayerNorm2& layer : vote.layers) {
    const auto index = static_cast<std::size_t>(layer.layer);
    if (index >= norms.size()) return malformed(rank, "it names a layer that does not exist");
    if (norms[index].has_value()) return malformed(rank, "it repeats a layer");
    norms[index] = layer.squared_norm;
  }
  return {};
}

// Adds the norms of an island's layers in their order. `ranks`: that voted, for the error.
Result<void> add_up(const std::vector<std::optional<double>>& norms,
                    const VoteRules& rules,
                    std::size_t ranks,
                    IslandTally& tally) {
  for (std::size_t layer = 0; layer < norms.size(); ++layer) {
    if (!norms[layer].has_value()) {
      return incomplete(fmt::format("no rank voted for layer {}", layer), ranks);
    }
    tally.squared_norm += *norms[layer];
    if (rules.corrected.empty() || !rules.corrected[layer]) {
      tally.clipped_squared_norm += *norms[layer];
    }
  }
  return {};
}

std::string copies_text(const CopyGroup& group) {
  return group.chunk ? fmt::format("chunk {}", group.chunk->value) : "the tied parameter";
}

// REQUIRES: check_extent passed for a step.
Result<void> compare_copies(const std::vector<Vote>& votes, const std::vector<CopyGroup>& groups) {
  std::vector<std::size_t> taken(votes.size());
  for (const CopyGroup& group : groups) {
    std::map<std::uint64_t, std::vector<int>> copies;  // ranks by the hash of their contents
    for (const Rank rank : group.ranks) {
      const std::size_t next = taken[rank.index()]++;
      copies[votes[rank.index()].copy_hashes[next]].push_back(rank.value);
    }
    if (copies.size() == 1) continue;
    constexpr std::size_t kNamed = 8;
    std::vector<std::string> parts;
    for (const auto& [hash, ranks] : copies) {
      if (parts.size() == kNamed) break;
      parts.push_back(fmt::format("{:016x} on rank {}", hash, fmt::join(ranks, ", ")));
    }
    if (copies.size() > kNamed) parts.push_back("different ones on others");
    return Error{
        ErrorCode::kInternal,
        fmt::format("the ranks that have {} have different parameters", copies_text(group)),
        fmt::format("their hashes: {}", fmt::join(parts, "; ")),
        "if it happens again, check the memory of the machines whose ranks differ from the others"};
  }
  return {};
}

}  // namespace

std::size_t VoteRules::island_count() const {
  return islands.empty() ? 1 : static_cast<std::size_t>(std::ranges::max(islands)) + 1;
}

std::size_t vote_bytes_max(const VoteRules& rules) {
  return vote_bytes(static_cast<std::size_t>(rules.layer_count), kStepFactors, rules.copies.size());
}

std::vector<std::byte> encode_vote(const Vote& vote) {
  std::vector<std::byte> bytes;
  put(bytes, vote.count);
  put(bytes, vote.loss_sum);
  put(bytes, vote.correct.value_or(kNotCounted));
  put(bytes, static_cast<std::uint32_t>(vote.layers.size()));
  put(bytes, static_cast<std::uint32_t>(vote.factors.size()));
  put(bytes, static_cast<std::uint32_t>(vote.copy_hashes.size()));
  put(bytes,
      (vote.ends ? kEnds : 0U) | (vote.saves ? kSaves : 0U) | (vote.predictions ? kPredicts : 0U));
  for (const LayerNorm2& layer : vote.layers) {
    put(bytes, static_cast<std::uint32_t>(layer.layer));
    put(bytes, layer.squared_norm);
  }
  for (const double factor : vote.factors) put(bytes, factor);
  for (const std::uint64_t hash : vote.copy_hashes) put(bytes, hash);
  if (vote.predictions) {
    put(bytes, vote.predictions->targets);
    put(bytes, vote.predictions->first);
    put(bytes, vote.predictions->top_five.value_or(kNotCountedFive));
  }
  return bytes;
}

Result<Tally> tally_votes(const std::vector<std::vector<std::byte>>& votes,
                          const VoteRules& rules,
                          VoteKind kind) {
  Tally tally;
  double right = 0;
  bool all_count = true;
  bool all_predict = true;
  std::vector<Vote> decoded;
  // [island][layer]
  std::vector<std::vector<std::optional<double>>> norms(
      rules.island_count(),
      std::vector<std::optional<double>>(static_cast<std::size_t>(rules.layer_count)));
  tally.islands.resize(norms.size());
  for (Rank rank{0}; rank.index() < votes.size(); ++rank.value) {
    MOTLEY_ASSIGN(const Vote vote, decode_vote(votes[rank.index()], rank));
    MOTLEY_TRY(check_extent(vote, rank, rules, kind));
    const std::size_t island =
        rules.islands.empty() ? 0 : static_cast<std::size_t>(rules.islands[rank.index()]);
    MOTLEY_TRY(add_norms(vote, rank, norms[island]));
    tally.islands[island].count += vote.count;
    tally.count += vote.count;
    tally.loss_sum += vote.loss_sum;
    right += vote.correct.value_or(0);
    all_count = all_count && (vote.count == 0 || vote.correct);
    all_predict = all_predict && (vote.count == 0 || vote.predictions);
    if (vote.predictions) {
      tally.predictions =
          tally.predictions ? sum_of(*tally.predictions, *vote.predictions) : vote.predictions;
    }
    tally.ends = tally.ends || vote.ends;
    tally.saves = tally.saves || vote.saves;
    decoded.push_back(vote);
  }
  if (all_count) tally.correct = right;
  if (!all_predict) tally.predictions.reset();
  tally.finite = std::isfinite(tally.loss_sum);
  if (kind == VoteKind::kEvaluation) return tally;
  MOTLEY_TRY(compare_copies(decoded, rules.copies));
  for (std::size_t island = 0; island < norms.size(); ++island) {
    MOTLEY_TRY(add_up(norms[island], rules, votes.size(), tally.islands[island]));
    tally.finite = tally.finite && std::isfinite(tally.islands[island].squared_norm);
  }
  tally.factors = decoded.front().factors;
  return tally;
}

}  // namespace motley

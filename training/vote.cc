#include "training/vote.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/wire_sizes.h"

namespace motley {
namespace {

// Layout, little-endian: tokens i64, loss_sum f64, count u32, then count × (layer u32, norm f64).
static_assert(std::endian::native == std::endian::little,
              "votes are written as they lie in memory");
constexpr std::int64_t kTokensMax = std::int64_t{1} << 40;  // of one batch; keeps sums in range

template <class T>
void put(std::vector<std::byte>& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Error malformed(std::size_t rank, const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("the vote of rank {} is malformed", rank), cause, ""};
}

Result<Vote> decode_vote(std::span<const std::byte> bytes, std::size_t rank) {
  if (bytes.size() < vote_bytes(0)) return malformed(rank, "it is too short");
  Vote vote;
  vote.tokens = get<std::int64_t>(bytes, 0);
  vote.loss_sum = get<double>(bytes, 8);
  const std::size_t count = get<std::uint32_t>(bytes, 16);
  if (vote.tokens < 0 || vote.tokens > kTokensMax || bytes.size() != vote_bytes(count)) {
    return malformed(rank, "its length does not fit its content");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = vote_bytes(i);
    vote.layers.push_back(
        {static_cast<int>(get<std::uint32_t>(bytes, at)), get<double>(bytes, at + 4)});
  }
  return vote;
}

}  // namespace

std::size_t vote_bytes_max(int layer_count) {
  return vote_bytes(static_cast<std::size_t>(layer_count));
}

std::vector<std::byte> encode_vote(const Vote& vote) {
  std::vector<std::byte> bytes;
  put(bytes, vote.tokens);
  put(bytes, vote.loss_sum);
  put(bytes, static_cast<std::uint32_t>(vote.layers.size()));
  for (const LayerNorm2& layer : vote.layers) {
    put(bytes, static_cast<std::uint32_t>(layer.layer));
    put(bytes, layer.squared_norm);
  }
  return bytes;
}

Result<Tally> tally_votes(const std::vector<std::vector<std::byte>>& votes,
                          int layer_count,
                          bool for_step) {
  Tally tally;
  std::vector<std::optional<double>> norms(static_cast<std::size_t>(layer_count));
  for (std::size_t rank = 0; rank < votes.size(); ++rank) {
    MOTLEY_ASSIGN(const Vote vote, decode_vote(votes[rank], rank));
    tally.tokens += vote.tokens;
    tally.loss_sum += vote.loss_sum;
    for (const LayerNorm2& layer : vote.layers) {
      const auto index = static_cast<std::size_t>(layer.layer);
      if (index >= norms.size()) return malformed(rank, "it names a layer that does not exist");
      if (norms[index].has_value()) return malformed(rank, "it repeats a layer");
      norms[index] = layer.squared_norm;
    }
  }
  for (std::size_t layer = 0; for_step && layer < norms.size(); ++layer) {
    if (!norms[layer].has_value()) {
      return Error{ErrorCode::kCorrupt, fmt::format("no rank voted for layer {}", layer),
                   fmt::format("there are votes of {} ranks", votes.size()),
                   "start all ranks with the same version of Motley"};
    }
    tally.squared_norm += *norms[layer];
  }
  if (tally.tokens == 0) {
    return Error{ErrorCode::kCorrupt, "no rank voted a loss",
                 fmt::format("there are votes of {} ranks", votes.size()),
                 "start all ranks with the same version of Motley"};
  }
  tally.finite = std::isfinite(tally.squared_norm) && std::isfinite(tally.loss_sum);
  return tally;
}

}  // namespace motley

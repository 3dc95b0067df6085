#include "record/run_prediction.h"

#include <utility>

#include "base/json.h"
#include "base/json/json_fields.h"
#include "plan/group_limits.h"

namespace motley {
namespace {

constexpr const char* kPredictionFormat = "motley.prediction";
constexpr int kPredictionVersion = 1;
constexpr std::size_t kPairsMax = 65536;
constexpr double kPredictedMax = 1e18;  // bytes, and bytes a second

Result<Rank> rank_at(const JsonFields& fields, const char* key, std::size_t ranks) {
  MOTLEY_ASSIGN(const std::int64_t rank,
                fields.integer(key, 0, static_cast<std::int64_t>(ranks) - 1));
  return Rank{static_cast<std::int32_t>(rank)};
}

}  // namespace

Json prediction_to_json(const RunPrediction& prediction) {
  Json ranks = Json::array();
  for (const RankPrediction& rank : prediction.ranks) {
    ranks.push_back(
        {{"sent_bytes", rank.sent_bytes}, {"memory_limit_bytes", rank.memory_limit_bytes}});
  }
  Json links = Json::array();
  for (const LinkPrediction& link : prediction.links) {
    links.push_back({{"from", link.from.value},
                     {"to", link.to.value},
                     {"bytes", link.bytes},
                     {"bandwidth_bytes_per_s", link.bandwidth_bytes_per_s}});
  }
  return {{"format", kPredictionFormat},
          {"version", kPredictionVersion},
          {"plan_hash", prediction.plan_hash},
          {"ranks", std::move(ranks)},
          {"links", std::move(links)}};
}

Result<RunPrediction> parse_prediction(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  MOTLEY_TRY(fields.header(kPredictionFormat, kPredictionVersion));
  RunPrediction prediction;
  MOTLEY_ASSIGN(prediction.plan_hash, fields.word("plan_hash", ""));
  MOTLEY_ASSIGN(const auto ranks, fields.items("ranks", 1, kRanksMax));
  for (const JsonFields& item : ranks) {
    RankPrediction rank;
    MOTLEY_ASSIGN(rank.sent_bytes, item.quantity("sent_bytes", kPredictedMax));
    MOTLEY_ASSIGN(rank.memory_limit_bytes, item.integer("memory_limit_bytes", 0, kMemoryBytesMax));
    prediction.ranks.push_back(rank);
  }
  MOTLEY_ASSIGN(const auto links, fields.items("links", 0, kPairsMax));
  for (const JsonFields& item : links) {
    LinkPrediction link;
    MOTLEY_ASSIGN(link.from, rank_at(item, "from", ranks.size()));
    MOTLEY_ASSIGN(link.to, rank_at(item, "to", ranks.size()));
    MOTLEY_ASSIGN(link.bytes, item.quantity("bytes", kPredictedMax));
    MOTLEY_ASSIGN(link.bandwidth_bytes_per_s,
                  item.quantity("bandwidth_bytes_per_s", kPredictedMax));
    prediction.links.push_back(link);
  }
  return prediction;
}

}  // namespace motley

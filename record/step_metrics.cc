#include "record/step_metrics.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/json.h"
#include "base/json/json_fields.h"
#include "base/json_position.h"
#include "plan/group_limits.h"

namespace motley {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kMetricsSecondsMax = 1e12;
constexpr std::int64_t kMetricsStepsMax = std::int64_t{1} << 52;
constexpr std::int64_t kCountMax = std::int64_t{1} << 62;

// For plots: a non-finite value is a gap.
Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

bool says(const JsonFields& fields, const char* key) {
  return fields.has(key) && !fields.value()[key].is_null();
}

Result<double> number_or_unknown(const JsonFields& fields, const char* key) {
  if (!says(fields, key)) return kUnknown;
  const Json& value = fields.value()[key];
  if (!value.is_number()) return fields.bad(key, "a number was expected");
  return value.get<double>();
}

Result<std::optional<double>> find_number(const JsonFields& fields, const char* key) {
  MOTLEY_ASSIGN(const double value, number_or_unknown(fields, key));
  return fields.has(key) ? std::optional(value) : std::nullopt;
}

Result<double> seconds_or_unknown(const JsonFields& fields, const char* key) {
  if (!says(fields, key)) return kUnknown;
  return fields.quantity(key, kMetricsSecondsMax);
}

Result<std::int64_t> count_or_zero(const JsonFields& fields, const char* key) {
  if (!says(fields, key)) return std::int64_t{0};
  return fields.integer(key, 0, kCountMax);
}

Result<bool> flag_or_false(const JsonFields& fields, const char* key) {
  return says(fields, key) ? fields.boolean(key) : Result<bool>(false);
}

Result<StepMetrics::Losses> losses_from(const JsonFields& fields) {
  StepMetrics::Losses losses{kUnknown, kUnknown, kUnknown, kUnknown};
  if (!says(fields, "losses")) return losses;
  MOTLEY_ASSIGN(const JsonFields said, fields.member("losses"));
  if (!said.value().is_object()) return said.bad("an object was expected");
  MOTLEY_ASSIGN(losses.imbalance, number_or_unknown(said, "imbalance"));
  MOTLEY_ASSIGN(losses.links_and_filling, number_or_unknown(said, "links_and_filling"));
  MOTLEY_ASSIGN(losses.codec, number_or_unknown(said, "codec"));
  MOTLEY_ASSIGN(losses.optimizer, number_or_unknown(said, "optimizer"));
  return losses;
}

Result<std::vector<double>> waits_from(const JsonFields& fields) {
  std::vector<double> waits_s;
  if (!says(fields, "wait_s")) return waits_s;
  MOTLEY_ASSIGN(const auto items, fields.items("wait_s", 0, kRanksMax));
  for (const JsonFields& item : items) {
    if (!item.value().is_number()) return item.bad("a number was expected");
    waits_s.push_back(item.value().get<double>());
  }
  return waits_s;
}

// Unknown wait causes, of later versions, count as "other".
Result<WaitTimes> causes_from(const JsonFields& rank) {
  constexpr std::size_t kCausesMax = 64;
  WaitTimes waits;
  if (!says(rank, "wait_s")) return waits;
  MOTLEY_ASSIGN(const auto causes, rank.members("wait_s", kCausesMax));
  for (const auto& [name, seconds] : causes) {
    if (!seconds.value().is_number()) return seconds.bad("a number was expected");
    std::size_t cause = 0;
    while (cause + 1 < kWaitCauseNames.size() && name != kWaitCauseNames[cause]) ++cause;
    waits.seconds[cause] += seconds.value().get<double>();
  }
  return waits;
}

Result<std::vector<StepMetrics::RankStep>> ranks_from(const JsonFields& fields) {
  std::vector<StepMetrics::RankStep> ranks;
  if (!says(fields, "ranks")) return ranks;
  MOTLEY_ASSIGN(const auto items, fields.items("ranks", 0, kRanksMax));
  for (const JsonFields& item : items) {
    if (!item.value().is_object()) return item.bad("an object was expected");
    StepMetrics::RankStep rank;
    MOTLEY_ASSIGN(rank.times.compute_s, number_or_unknown(item, "compute_s"));
    MOTLEY_ASSIGN(rank.times.codec_s, number_or_unknown(item, "codec_s"));
    MOTLEY_ASSIGN(rank.times.optimizer_s, number_or_unknown(item, "optimizer_s"));
    if (item.has("data_s")) {
      MOTLEY_ASSIGN(rank.times.data_s, number_or_unknown(item, "data_s"));
    }
    MOTLEY_ASSIGN(rank.times.wait_s, causes_from(item));
    MOTLEY_ASSIGN(rank.memory_bytes, count_or_zero(item, "memory_bytes"));
    ranks.push_back(rank);
  }
  return ranks;
}

Result<std::vector<StepMetrics::Sent>> links_from(const JsonFields& fields) {
  constexpr std::size_t kLinksMax = 65536;
  std::vector<StepMetrics::Sent> links;
  if (!says(fields, "links")) return links;
  MOTLEY_ASSIGN(const auto items, fields.items("links", 0, kLinksMax));
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(const std::int64_t from, item.integer("from", 0, kRanksMax - 1));
    MOTLEY_ASSIGN(const std::int64_t to, item.integer("to", 0, kRanksMax - 1));
    MOTLEY_ASSIGN(const std::int64_t bytes, item.integer("bytes", 0, kCountMax));
    links.push_back({Rank{static_cast<std::int32_t>(from)}, Rank{static_cast<std::int32_t>(to)},
                     static_cast<std::uint64_t>(bytes)});
  }
  return links;
}

Json ranks_to_json(const std::vector<StepMetrics::RankStep>& ranks) {
  Json list = Json::array();
  for (const StepMetrics::RankStep& rank : ranks) {
    Json waits = Json::object();
    for (std::size_t cause = 0; cause < kWaitCauseNames.size(); ++cause) {
      const double seconds = rank.times.wait_s.seconds[cause];
      if (seconds > 0) waits[kWaitCauseNames[cause]] = seconds;
    }
    list.push_back({{"compute_s", rank.times.compute_s},
                    {"codec_s", rank.times.codec_s},
                    {"optimizer_s", rank.times.optimizer_s},
                    {"wait_s", std::move(waits)},
                    {"memory_bytes", rank.memory_bytes}});
    if (rank.times.data_s > 0) list.back()["data_s"] = rank.times.data_s;
  }
  return list;
}

Json links_to_json(const std::vector<StepMetrics::Sent>& links) {
  Json list = Json::array();
  for (const StepMetrics::Sent& sent : links) {
    list.push_back({{"from", sent.from.value}, {"to", sent.to.value}, {"bytes", sent.bytes}});
  }
  return list;
}

// Members that only some steps have.
Result<void> read_extras(const JsonFields& fields, StepMetrics& metrics) {
  MOTLEY_ASSIGN(metrics.without_targets, flag_or_false(fields, "without_targets"));
  MOTLEY_ASSIGN(metrics.eval_without_targets, flag_or_false(fields, "eval_without_targets"));
  MOTLEY_ASSIGN(metrics.outcome.accuracy, find_number(fields, "accuracy"));
  MOTLEY_ASSIGN(metrics.outcome.gradient_scale, find_number(fields, "gradient_scale"));
  MOTLEY_ASSIGN(metrics.eval_loss, find_number(fields, "eval_loss"));
  MOTLEY_ASSIGN(metrics.eval_perplexity, find_number(fields, "eval_perplexity"));
  MOTLEY_ASSIGN(metrics.eval_accuracy, find_number(fields, "eval_accuracy"));
  MOTLEY_ASSIGN(metrics.eval_top5_accuracy, find_number(fields, "eval_top5_accuracy"));
  MOTLEY_ASSIGN(metrics.eval_bits_per_byte, find_number(fields, "eval_bits_per_byte"));
  return {};
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

double StepMetrics::tokens_per_s() const {
  return ratio(static_cast<double>(outcome.tokens), step_s);
}

double StepMetrics::wait_share() const {
  const double sum_s = std::accumulate(wait_s.begin(), wait_s.end(), 0.0);
  return ratio(sum_s, static_cast<double>(wait_s.size()) * step_s);
}

Json metrics_to_json(const StepMetrics& metrics) {
  Json json = {{"step", metrics.step},
               {"loss", finite_or_null(metrics.outcome.loss)},
               {"tokens", metrics.outcome.tokens},
               {"step_s", metrics.step_s},
               {"tokens_per_s", metrics.tokens_per_s()},
               {"predicted_step_s", metrics.predicted_step_s},
               {"lr", metrics.outcome.lr},
               {"grad_norm", finite_or_null(metrics.outcome.grad_norm)},
               {"skipped", metrics.outcome.skipped},
               {"wire_bytes", metrics.wire_bytes},
               {"bubble", metrics.bubble},
               {"losses",
                {{"imbalance", metrics.losses.imbalance},
                 {"links_and_filling", metrics.losses.links_and_filling},
                 {"codec", metrics.losses.codec},
                 {"optimizer", metrics.losses.optimizer}}},
               {"wait_s", metrics.wait_s},
               {"time", metrics.time_s},
               {"ranks", ranks_to_json(metrics.ranks)},
               {"links", links_to_json(metrics.links)}};
  if (!metrics.is_computed) {
    json["virtual"] = true;
    json["loss"] = nullptr;
    json["grad_norm"] = nullptr;
  }
  if (metrics.without_targets) json["without_targets"] = true;
  if (metrics.eval_without_targets) json["eval_without_targets"] = true;
  if (metrics.outcome.gradient_scale) json["gradient_scale"] = *metrics.outcome.gradient_scale;
  if (metrics.outcome.accuracy) json["accuracy"] = *metrics.outcome.accuracy;
  if (metrics.eval_accuracy) json["eval_accuracy"] = *metrics.eval_accuracy;
  if (metrics.eval_top5_accuracy) json["eval_top5_accuracy"] = *metrics.eval_top5_accuracy;
  if (metrics.eval_loss) json["eval_loss"] = finite_or_null(*metrics.eval_loss);
  if (metrics.eval_perplexity) json["eval_perplexity"] = finite_or_null(*metrics.eval_perplexity);
  if (metrics.eval_bits_per_byte) {
    json["eval_bits_per_byte"] = finite_or_null(*metrics.eval_bits_per_byte);
  }
  return json;
}

Result<StepMetrics> metrics_from_json(const Json& json, const std::string& source) {
  const JsonSource place(source);
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  StepMetrics metrics;
  MOTLEY_ASSIGN(metrics.step, fields.integer("step", 1, kMetricsStepsMax));
  MOTLEY_ASSIGN(metrics.outcome.loss, number_or_unknown(fields, "loss"));
  MOTLEY_ASSIGN(metrics.outcome.tokens, count_or_zero(fields, "tokens"));
  MOTLEY_ASSIGN(metrics.step_s, seconds_or_unknown(fields, "step_s"));
  MOTLEY_ASSIGN(metrics.predicted_step_s, seconds_or_unknown(fields, "predicted_step_s"));
  MOTLEY_ASSIGN(metrics.outcome.lr, number_or_unknown(fields, "lr"));
  MOTLEY_ASSIGN(metrics.outcome.grad_norm, number_or_unknown(fields, "grad_norm"));
  MOTLEY_ASSIGN(metrics.outcome.skipped, flag_or_false(fields, "skipped"));
  MOTLEY_ASSIGN(const std::int64_t wire_bytes, count_or_zero(fields, "wire_bytes"));
  metrics.wire_bytes = static_cast<std::uint64_t>(wire_bytes);
  MOTLEY_ASSIGN(metrics.bubble, number_or_unknown(fields, "bubble"));
  MOTLEY_ASSIGN(metrics.losses, losses_from(fields));
  MOTLEY_ASSIGN(metrics.wait_s, waits_from(fields));
  MOTLEY_ASSIGN(const bool is_virtual, flag_or_false(fields, "virtual"));
  metrics.is_computed = !is_virtual;
  MOTLEY_ASSIGN(metrics.time_s, seconds_or_unknown(fields, "time"));
  if (!(metrics.time_s > 0)) metrics.time_s = 0;
  MOTLEY_ASSIGN(metrics.ranks, ranks_from(fields));
  MOTLEY_ASSIGN(metrics.links, links_from(fields));
  MOTLEY_TRY(read_extras(fields, metrics));
  return metrics;
}

}  // namespace motley

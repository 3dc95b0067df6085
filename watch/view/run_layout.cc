#include "watch/view/run_layout.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>

#include "base/json.h"
#include "plan/rank_names.h"

namespace motley {
namespace {

// Bounds the pairs of replicated chunks with thousands of replicas each.
constexpr std::size_t kLinksShownMax = 4096;

using Pairs = std::map<std::pair<int, int>, std::string>;  // codec by pair of ranks

void add_pairs(const ChunkPlan& from, const ChunkPlan& to, const std::string& codec, Pairs& pairs) {
  for (const Replica& a : from.replicas) {
    for (const Replica& b : to.replicas) {
      if (a.rank == b.rank || pairs.size() >= kLinksShownMax) continue;
      pairs.emplace(std::pair(a.rank.value, b.rank.value), codec);
    }
  }
}

void add_prediction(const RunPrediction& prediction, RunLayout& layout) {
  for (std::size_t r = 0; r < layout.ranks.size(); ++r) {
    layout.ranks[r].memory_limit_bytes = prediction.ranks[r].memory_limit_bytes;
    layout.sent_bytes.push_back(prediction.ranks[r].sent_bytes);
  }
  std::map<std::pair<int, int>, const LinkPrediction*> predicted;
  for (const LinkPrediction& link : prediction.links) {
    predicted[{link.from.value, link.to.value}] = &link;
  }
  std::erase_if(layout.links, [&](LayoutLink& link) {
    const auto found = predicted.find({link.from.value, link.to.value});
    if (found == predicted.end()) return true;
    link.predicted_bytes = found->second->bytes;
    link.bandwidth_bytes_per_s = found->second->bandwidth_bytes_per_s;
    return false;
  });
}

Json predicted_or_null(double value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

// The layer ranges of the chunks on the rank.
Json chunks_of(const Plan& plan, Rank rank) {
  Json chunks = Json::array();
  for (const ChunkPlan& chunk : plan.chunks) {
    if (!chunk.is_on(rank)) continue;
    chunks.push_back(Json::array({chunk.first_layer, chunk.first_layer + chunk.layer_count - 1}));
  }
  return chunks;
}

Json rank_to_json(const Plan& plan, const RunLayout& layout, Rank rank) {
  const RankPlan& place = plan.ranks[rank.index()];
  const Json chunks = chunks_of(plan, rank);
  const bool knows_sent = rank.index() < layout.sent_bytes.size();
  return {{"name", rank_name(plan, rank)},
          {"machine", place.machine},
          {"device", place.device},
          {"first_layer", chunks.front().front()},
          {"last_layer", chunks.back().back()},
          {"chunks", chunks},
          {"predicted",
           {{"compute_s", predicted_or_null(place.compute_s)},
            {"memory_bytes", predicted_or_null(static_cast<double>(place.memory_bytes))},
            {"sent_bytes", knows_sent ? Json(layout.sent_bytes[rank.index()]) : Json(nullptr)}}},
          {"memory_limit_bytes",
           predicted_or_null(static_cast<double>(layout.ranks[rank.index()].memory_limit_bytes))}};
}

Json machines_to_json(const Plan& plan) {
  std::vector<std::string> names;
  std::map<std::string, Json> ranks;
  for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
    const std::string& name = plan.ranks[rank.index()].machine;
    const auto [held, is_new] = ranks.try_emplace(name, Json::array());
    if (is_new) names.push_back(name);
    held->second.push_back(rank.value);
  }
  Json machines = Json::array();
  for (const std::string& name : names) {
    machines.push_back({{"name", name}, {"ranks", ranks[name]}});
  }
  return machines;
}

}  // namespace

RunLayout layout_of(const Plan& plan, const std::optional<RunPrediction>& prediction) {
  RunLayout layout;
  for (const RankPlan& rank : plan.ranks) layout.ranks.push_back({rank.machine, rank.compute_s, 0});
  Pairs pairs;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    add_pairs(chunk, chunk, plan.gradient_codec, pairs);
    if (c + 1 == plan.chunks.size()) break;
    add_pairs(chunk, plan.chunks[c + 1], chunk.codec, pairs);
    add_pairs(plan.chunks[c + 1], chunk, chunk.codec, pairs);
  }
  for (const auto& [ranks, codec] : pairs) {
    layout.links.push_back({Rank{ranks.first}, Rank{ranks.second}, codec});
  }
  if (prediction) add_prediction(*prediction, layout);
  return layout;
}

std::string model_text(const ModelConfig& model) {
  if (model.kind == "package") return std::filesystem::path(model.path).stem().string();
  return fmt::format("{}, {} layers of width {}", model.kind, model.layers, model.width);
}

Json layout_to_json(const Plan& plan, const RunLayout& layout) {
  Json ranks = Json::array();
  for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
    ranks.push_back(rank_to_json(plan, layout, rank));
  }
  Json links = Json::array();
  for (const LayoutLink& link : layout.links) {
    links.push_back({{"from", link.from.value},
                     {"to", link.to.value},
                     {"from_machine", plan.ranks[link.from.index()].machine},
                     {"to_machine", plan.ranks[link.to.index()].machine},
                     {"codec", link.codec},
                     {"bandwidth_bytes_s", predicted_or_null(link.bandwidth_bytes_per_s)},
                     {"predicted_bytes", predicted_or_null(link.predicted_bytes)}});
  }
  return {{"machines", machines_to_json(plan)},
          {"ranks", std::move(ranks)},
          {"links", std::move(links)},
          {"plan",
           {{"hash", plan_hash_text(plan)},
            {"schedule", plan.schedule},
            {"micro_batches", plan.micro_batches},
            {"predicted_step_s", predicted_or_null(plan.predicted_step_s)}}}};
}

}  // namespace motley

#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/json.h"
#include "base/toml.h"
#include "plan/assign_micro_batches.h"
#include "plan/cluster.h"
#include "plan/json_fields.h"
#include "plan/limits.h"
#include "plan/schedule_facts.h"

namespace motley {
namespace {

constexpr const char* kPlanFormat = "motley.plan";
constexpr int kPlanVersion = 6;
constexpr const char* kCodecOthers = "._-|()";  // in a chain, besides letters and digits
constexpr std::size_t kChunksMax = 65536;
constexpr std::size_t kNotesMax = 1000;
constexpr int kLayersMax = 1 << 16;
constexpr int kStepSamplesMax = 1 << 24;  // per step, as train.global_batch
constexpr double kStepSecondsMax = 1e12;
constexpr std::int64_t kMicrosecondsMax =
    100'000'000'000;  // per pass, so that sums cannot overflow

Result<RankPlan> read_rank(const JsonFields& fields) {
  RankPlan rank;
  MOTLEY_ASSIGN(rank.machine, fields.word("machine", kMachineNameOthers));
  MOTLEY_ASSIGN(rank.device, fields.word("device", kDeviceNameOthers));
  MOTLEY_ASSIGN(const std::int64_t threads, fields.integer("threads", 1, kThreadsMax));
  rank.threads = static_cast<int>(threads);
  MOTLEY_ASSIGN(rank.compute_s, fields.quantity("compute_s", kStepSecondsMax));
  MOTLEY_ASSIGN(rank.memory_bytes, fields.integer("memory_bytes", 0, kMemoryBytesMax));
  MOTLEY_ASSIGN(rank.link_mbps, fields.integer("link_mbps", 0, kLinkMbpsMax));
  if (fields.has("numbers")) {
    MOTLEY_ASSIGN(rank.compute_dtype, fields.one_of("numbers", kProductDtypes));
  }
  return rank;
}

// A plan written by hand needs none.
Result<PassTimes> read_times(const JsonFields& replica) {
  PassTimes times;
  if (!replica.has("forward_us")) return times;
  MOTLEY_ASSIGN(times.forward, replica.integer("forward_us", 1, kMicrosecondsMax));
  MOTLEY_ASSIGN(times.backward_input, replica.integer("backward_input_us", 1, kMicrosecondsMax));
  MOTLEY_ASSIGN(times.backward_weight, replica.integer("backward_weight_us", 1, kMicrosecondsMax));
  return times;
}

// The ranks of one chunk. Limits of terms and counts keep both sums far from overflow.
Result<std::vector<Replica>> read_replicas(const JsonFields& chunk, const Plan& plan) {
  MOTLEY_ASSIGN(const auto items, chunk.items("replicas", 1, kRanksMax));
  std::vector<Replica> replicas;
  std::int64_t sum = 0;
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(const std::int64_t rank, item.integer("rank", 0, plan.rank_count() - 1));
    MOTLEY_ASSIGN(const std::int64_t share, item.integer("micro_batches", 1, plan.micro_batches));
    if (!replicas.empty() && rank <= replicas.back().rank.value) {
      return item.bad("rank", "the ranks of a chunk must ascend, each once");
    }
    MOTLEY_ASSIGN(const PassTimes times, read_times(item));
    replicas.push_back({{static_cast<std::int32_t>(rank)}, static_cast<int>(share), times});
    sum += share;
  }
  if (sum != plan.micro_batches) {
    return chunk.bad("replicas", fmt::format("they have {} micro-batches; a step has {}", sum,
                                             plan.micro_batches));
  }
  return replicas;
}

Result<ChunkPlan> read_chunk(const JsonFields& fields,
                             const Plan& plan,
                             std::int64_t expected_first) {
  MOTLEY_ASSIGN(const std::int64_t first, fields.integer("first_layer", 0, kLayersMax));
  if (first != expected_first) {
    return fields.bad("first_layer",
                      fmt::format("it is {}; the chunk before it ends so that this one "
                                  "must begin at {}",
                                  first, expected_first));
  }
  MOTLEY_ASSIGN(const std::int64_t count, fields.integer("layer_count", 1, kLayersMax));
  ChunkPlan chunk;
  chunk.first_layer = static_cast<int>(first);
  chunk.layer_count = static_cast<int>(count);
  MOTLEY_ASSIGN(chunk.replicas, read_replicas(fields, plan));
  MOTLEY_ASSIGN(chunk.codec, fields.word("codec", kCodecOthers));
  MOTLEY_ASSIGN(chunk.recompute, fields.boolean("recompute"));
  MOTLEY_ASSIGN(const std::int64_t in_flight, fields.integer("in_flight", 0, plan.micro_batches));
  chunk.in_flight = static_cast<int>(in_flight);
  MOTLEY_ASSIGN(const std::int64_t queued_weights,
                fields.integer("queued_weights", 0, plan.micro_batches));
  chunk.queued_weights = static_cast<int>(queued_weights);
  MOTLEY_ASSIGN(chunk.hop_us, fields.integer("hop_us", 0, kMicrosecondsMax));
  return chunk;
}

Result<void> read_batches(const JsonFields& fields, Plan& plan) {
  MOTLEY_ASSIGN(const std::int64_t micro_batch, fields.integer("micro_batch", 1, kStepSamplesMax));
  MOTLEY_ASSIGN(const std::int64_t micro_batches,
                fields.integer("micro_batches", 1, kStepSamplesMax / micro_batch));
  plan.micro_batch = static_cast<int>(micro_batch);
  plan.micro_batches = static_cast<int>(micro_batches);
  return {};
}

Result<void> read_ranks(const JsonFields& fields, Plan& plan) {
  MOTLEY_ASSIGN(const auto items, fields.items("ranks", 1, kRanksMax));
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(RankPlan rank, read_rank(item));
    plan.ranks.push_back(std::move(rank));
  }
  return {};
}

// Limits a chunk's micro-batches in flight by those of the preceding chunk. Otherwise it could wait
// for a forward that the preceding chunk runs only after a backward.
Result<void> check_in_flight(const JsonFields& chunk, const Plan& plan, int in_flight) {
  if (in_flight != 0 && !find_schedule(plan.schedule)->limits_in_flight) {
    return chunk.bad("in_flight", fmt::format("{} has no limit; it must be 0", plan.schedule));
  }
  if (plan.chunks.empty()) return {};
  const int before = plan.chunks.back().in_flight;
  if (in_flight <= before && (in_flight == 0) == (before == 0)) return {};
  return chunk.bad(
      "in_flight",
      fmt::format("it is {} after {}; it must not increase, and be 0 in all chunks or in none",
                  in_flight, before));
}

Result<void> check_queued_weights(const JsonFields& chunk, const Plan& plan, int queued) {
  if (queued != 0 && !find_schedule(plan.schedule)->splits_backward) {
    return chunk.bad("queued_weights", fmt::format("{} queues none; it must be 0", plan.schedule));
  }
  if (plan.chunks.empty() || (queued == 0) == (plan.chunks.back().queued_weights == 0)) return {};
  return chunk.bad("queued_weights",
                   fmt::format("it is {} after {}; it must be 0 in all chunks or in none", queued,
                               plan.chunks.back().queued_weights));
}

Result<void> read_chunks(const JsonFields& fields, Plan& plan) {
  MOTLEY_ASSIGN(const auto items, fields.items("chunks", 1, kChunksMax));
  std::vector<bool> used(plan.ranks.size(), false);
  std::int64_t next_layer = 0;
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(ChunkPlan chunk, read_chunk(item, plan, next_layer));
    MOTLEY_TRY(check_in_flight(item, plan, chunk.in_flight));
    MOTLEY_TRY(check_queued_weights(item, plan, chunk.queued_weights));
    next_layer += chunk.layer_count;
    if (next_layer > kLayersMax) {
      return item.bad("layer_count",
                      fmt::format("the plan has {} layers up to this chunk; the limit is {}",
                                  next_layer, kLayersMax));
    }
    for (const Replica& replica : chunk.replicas) used[replica.rank.index()] = true;
    plan.chunks.push_back(std::move(chunk));
  }
  if (plan.chunk_count() * std::int64_t{plan.micro_batches} > kChunkPassesMax) {
    return fields.bad("chunks",
                      fmt::format("{} chunks times {} micro-batches are more than {}",
                                  plan.chunk_count(), plan.micro_batches, kChunkPassesMax));
  }
  for (std::size_t r = 0; r < used.size(); ++r) {
    if (!used[r]) return fields.bad("chunks", fmt::format("rank {} has no chunk", r));
  }
  return {};
}

}  // namespace

bool ChunkPlan::is_on(Rank rank) const {
  return std::any_of(replicas.begin(), replicas.end(),
                     [&](const Replica& replica) { return replica.rank == rank; });
}

std::vector<Rank> micro_batch_owners(const ChunkPlan& chunk) {
  std::vector<int> shares;
  for (const Replica& replica : chunk.replicas) shares.push_back(replica.micro_batches);
  std::vector<Rank> owners;
  for (const std::size_t replica : assign_micro_batches(shares))
    owners.push_back(chunk.replicas[replica].rank);
  return owners;
}

Json plan_to_json(const Plan& plan) {
  Json ranks = Json::array();
  for (const RankPlan& rank : plan.ranks) {
    Json json = {{"machine", rank.machine},     {"device", rank.device},
                 {"threads", rank.threads},     {"link_mbps", rank.link_mbps},
                 {"compute_s", rank.compute_s}, {"memory_bytes", rank.memory_bytes}};
    if (rank.compute_dtype != kFp32Dtype) json["numbers"] = rank.compute_dtype;
    ranks.push_back(std::move(json));
  }
  Json chunks = Json::array();
  for (const ChunkPlan& chunk : plan.chunks) {
    Json replicas = Json::array();
    for (const Replica& replica : chunk.replicas) {
      replicas.push_back({{"rank", replica.rank.value},
                          {"micro_batches", replica.micro_batches},
                          {"forward_us", replica.times.forward},
                          {"backward_input_us", replica.times.backward_input},
                          {"backward_weight_us", replica.times.backward_weight}});
    }
    chunks.push_back({{"first_layer", chunk.first_layer},
                      {"layer_count", chunk.layer_count},
                      {"replicas", std::move(replicas)},
                      {"codec", chunk.codec},
                      {"recompute", chunk.recompute},
                      {"in_flight", chunk.in_flight},
                      {"queued_weights", chunk.queued_weights},
                      {"hop_us", chunk.hop_us}});
  }
  return {{"format", kPlanFormat},
          {"version", kPlanVersion},
          {"hash", plan_hash_text(plan)},
          {"model_hash", plan.model_hash},
          {"schedule", plan.schedule},
          {"gradient_codec", plan.gradient_codec},
          {"micro_batch", plan.micro_batch},
          {"micro_batches", plan.micro_batches},
          {"predicted_step_s", plan.predicted_step_s},
          {"ranks", std::move(ranks)},
          {"chunks", std::move(chunks)},
          {"notes", plan.notes}};
}

Result<Plan> parse_plan(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  return plan_from_json(json, JsonSource(source, text));
}

Result<Plan> plan_from_json(const Json& json, const JsonSource& source) {
  const JsonFields fields(json, source, ErrorCode::kConfig);
  MOTLEY_TRY(fields.header(kPlanFormat, kPlanVersion));
  Plan plan;
  MOTLEY_ASSIGN(plan.model_hash, fields.word("model_hash", ""));
  MOTLEY_ASSIGN(plan.schedule, fields.text("schedule"));
  if (find_schedule(plan.schedule) == nullptr) {
    return fields.bad("schedule",
                      fmt::format("unknown schedule '{}'; the schedules are {}",
                                  excerpt(plan.schedule), word_list(schedule_names(), "and")));
  }
  MOTLEY_ASSIGN(plan.gradient_codec, fields.word("gradient_codec", kCodecOthers));
  MOTLEY_TRY(read_batches(fields, plan));
  MOTLEY_ASSIGN(plan.predicted_step_s, fields.quantity("predicted_step_s", kStepSecondsMax));
  MOTLEY_TRY(read_ranks(fields, plan));
  MOTLEY_TRY(read_chunks(fields, plan));
  MOTLEY_ASSIGN(plan.notes, fields.texts("notes", kNotesMax));
  if (!fields.has("hash")) return plan;  // edited by hand
  MOTLEY_ASSIGN(const std::string hash, fields.text("hash"));
  if (hash != plan_hash_text(plan)) {
    Error error = fields.bad("hash", fmt::format("it is '{}', but the hash of the content is {}",
                                                 excerpt(hash), plan_hash_text(plan)));
    error.remedy = "if the change is intended, remove the line with \"hash\"";
    return error;
  }
  return plan;
}

std::string precision_of(const Plan& plan) {
  const auto asked = std::ranges::find_if(
      plan.ranks, [](const RankPlan& rank) { return rank.compute_dtype != kFp32Dtype; });
  return asked == plan.ranks.end() ? kFp32Dtype : asked->compute_dtype;
}

bool is_virtual(const Plan& plan) {
  return std::any_of(plan.ranks.begin(), plan.ranks.end(),
                     [](const RankPlan& rank) { return is_virtual_device(rank.device); });
}

std::string plan_hash_text(const Plan& plan) {
  return fmt::format("{:016x}", plan_hash(plan));
}

std::uint64_t plan_hash(const Plan& plan) {
  // Each string is preceded by its length, so that different plans have different texts.
  const auto counted = [](const std::string& s) { return fmt::format("{}:{}", s.size(), s); };
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {}", kPlanVersion, counted(plan.model_hash),
                  counted(plan.schedule), counted(plan.gradient_codec), plan.micro_batch,
                  plan.micro_batches, plan.ranks.size(), plan.chunks.size());
  for (const RankPlan& rank : plan.ranks) {
    text += fmt::format(" {} {} {} {}", counted(rank.machine), counted(rank.device), rank.threads,
                        rank.link_mbps);
  }
  for (const ChunkPlan& chunk : plan.chunks) {
    text += fmt::format(" {} {} {} {:d} {} {} {} {}", chunk.first_layer, chunk.layer_count,
                        counted(chunk.codec), chunk.recompute, chunk.in_flight,
                        chunk.queued_weights, chunk.hop_us, chunk.replicas.size());
    for (const Replica& replica : chunk.replicas) {
      const PassTimes& times = replica.times;
      text += fmt::format(" {} {} {} {} {}", replica.rank.value, replica.micro_batches,
                          times.forward, times.backward_input, times.backward_weight);
    }
  }
  return hash64(text);
}

}  // namespace motley

#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/json.h"
#include "base/json/json_table.h"
#include "base/toml.h"
#include "plan/assign_micro_batches.h"
#include "plan/group_limits.h"
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

constexpr auto kRankTable = json::table<RankPlan>(
    json::required("machine", &RankPlan::machine, json::word(kMachineNameOthers)),
    json::required("device", &RankPlan::device, json::word(kDeviceNameOthers)),
    json::required("threads", &RankPlan::threads, json::whole(1, kThreadsMax)),
    json::required("link_mbps", &RankPlan::link_mbps, json::whole(0, kLinkMbpsMax)),
    json::required("compute_s", &RankPlan::compute_s, json::quantity(kStepSecondsMax)),
    json::required("memory_bytes", &RankPlan::memory_bytes, json::whole(0, kMemoryBytesMax)),
    json::optional("numbers", &RankPlan::compute_dtype, json::one_of(kProductDtypes)));

constexpr auto kMicroseconds = json::whole(1, kMicrosecondsMax);

constexpr auto kTimesTable = json::table<PassTimes>(
    json::required("forward_us", &PassTimes::forward, kMicroseconds),
    json::required("backward_input_us", &PassTimes::backward_input, kMicroseconds),
    json::required("backward_weight_us", &PassTimes::backward_weight, kMicroseconds));

// A plan written by hand needs none.
struct Times {
  void write_into(const PassTimes& times, Json& object) const {
    kTimesTable.write_into(times, object);
  }

  [[nodiscard]] Result<void> read(const JsonFields& object, PassTimes& times) const {
    return object.has("forward_us") ? kTimesTable.read(object, times) : Result<void>();
  }
};

auto replica_table(const Plan& plan) {
  return json::table<Replica>(
      json::required("rank", &Replica::rank, json::whole(0, plan.rank_count() - 1)),
      json::required("micro_batches", &Replica::micro_batches, json::whole(1, plan.micro_batches)),
      json::part(&Replica::times, Times{}));
}

Result<void> check_replica(const JsonFields& fields,
                           const std::vector<Replica>& before,
                           const Replica& replica) {
  if (before.empty() || before.back().rank < replica.rank) return {};
  return fields.bad("rank", "the ranks of a chunk must ascend, each once");
}

// Limits of terms and counts keep the sum far from overflow.
Result<void> check_shares(const JsonFields& fields, const ChunkPlan& chunk, const Plan& plan) {
  std::int64_t sum = 0;
  for (const Replica& replica : chunk.replicas) sum += replica.micro_batches;
  if (sum == plan.micro_batches) return {};
  return fields.bad("replicas", fmt::format("they have {} micro-batches; a step has {}", sum,
                                            plan.micro_batches));
}

auto chunk_table(const Plan& plan) {
  const auto micro_batches = json::whole(0, plan.micro_batches);
  return json::table<ChunkPlan>(
      json::required("first_layer", &ChunkPlan::first_layer, json::whole(0, kLayersMax)),
      json::required("layer_count", &ChunkPlan::layer_count, json::whole(1, kLayersMax)),
      json::required("replicas", &ChunkPlan::replicas,
                     json::list(replica_table(plan), 1, kRanksMax, check_replica)),
      json::check([&plan](const JsonFields& fields, const ChunkPlan& chunk) {
        return check_shares(fields, chunk, plan);
      }),
      json::required("codec", &ChunkPlan::codec, json::word(kCodecOthers)),
      json::required("recompute", &ChunkPlan::recompute, json::flag()),
      json::required("in_flight", &ChunkPlan::in_flight, micro_batches),
      json::required("queued_weights", &ChunkPlan::queued_weights, micro_batches),
      json::required("hop_us", &ChunkPlan::hop_us, json::whole(0, kMicrosecondsMax)));
}

Result<void> check_layers(const JsonFields& fields,
                          const std::vector<ChunkPlan>& before,
                          const ChunkPlan& chunk) {
  const int first = before.empty() ? 0 : before.back().first_layer + before.back().layer_count;
  if (chunk.first_layer != first) {
    return fields.bad("first_layer",
                      fmt::format("it is {}; the chunk before it ends so that this one "
                                  "must begin at {}",
                                  chunk.first_layer, first));
  }
  const int end = first + chunk.layer_count;
  if (end <= kLayersMax) return {};
  return fields.bad(
      "layer_count",
      fmt::format("the plan has {} layers up to this chunk; the limit is {}", end, kLayersMax));
}

// Limits a chunk's micro-batches in flight by those of the preceding chunk. Otherwise it could wait
// for a forward that the preceding chunk runs only after a backward.
Result<void> check_in_flight(const JsonFields& fields,
                             const std::vector<ChunkPlan>& before,
                             const ChunkPlan& chunk,
                             const Plan& plan) {
  if (chunk.in_flight != 0 && !find_schedule(plan.schedule)->limits_in_flight) {
    return fields.bad("in_flight", fmt::format("{} has no limit; it must be 0", plan.schedule));
  }
  if (before.empty()) return {};
  const int limit = before.back().in_flight;
  if (chunk.in_flight <= limit && (chunk.in_flight == 0) == (limit == 0)) return {};
  return fields.bad(
      "in_flight",
      fmt::format("it is {} after {}; it must not increase, and be 0 in all chunks or in none",
                  chunk.in_flight, limit));
}

Result<void> check_queued_weights(const JsonFields& fields,
                                  const std::vector<ChunkPlan>& before,
                                  const ChunkPlan& chunk,
                                  const Plan& plan) {
  if (chunk.queued_weights != 0 && !find_schedule(plan.schedule)->splits_backward) {
    return fields.bad("queued_weights", fmt::format("{} queues none; it must be 0", plan.schedule));
  }
  if (before.empty() || (chunk.queued_weights == 0) == (before.back().queued_weights == 0)) {
    return {};
  }
  return fields.bad("queued_weights",
                    fmt::format("it is {} after {}; it must be 0 in all chunks or in none",
                                chunk.queued_weights, before.back().queued_weights));
}

auto chunk_list(const Plan& plan) {
  return json::list(chunk_table(plan), 1, kChunksMax,
                    [&plan](const JsonFields& fields, const std::vector<ChunkPlan>& before,
                            const ChunkPlan& chunk) -> Result<void> {
                      MOTLEY_TRY(check_layers(fields, before, chunk));
                      MOTLEY_TRY(check_in_flight(fields, before, chunk, plan));
                      return check_queued_weights(fields, before, chunk, plan);
                    });
}

Result<void> check_schedule(const JsonFields& fields, const Plan& plan) {
  if (find_schedule(plan.schedule) != nullptr) return {};
  return fields.bad(
      "schedule", fmt::format("unknown schedule '{}'; the schedules are {}", excerpt(plan.schedule),
                              word_list(schedule_names(), "and")));
}

Result<void> check_chunks(const JsonFields& fields, const Plan& plan) {
  if (plan.chunk_count() * std::int64_t{plan.micro_batches} > kChunkPassesMax) {
    return fields.bad("chunks",
                      fmt::format("{} chunks times {} micro-batches are more than {}",
                                  plan.chunk_count(), plan.micro_batches, kChunkPassesMax));
  }
  std::vector<bool> used(plan.ranks.size(), false);
  for (const ChunkPlan& chunk : plan.chunks) {
    for (const Replica& replica : chunk.replicas) used[replica.rank.index()] = true;
  }
  for (std::size_t r = 0; r < used.size(); ++r) {
    if (!used[r]) return fields.bad("chunks", fmt::format("rank {} has no chunk", r));
  }
  return {};
}

// A plan edited by hand has none.
Result<void> check_hash(const JsonFields& fields, const Plan& plan) {
  if (!fields.has("hash")) return {};
  MOTLEY_ASSIGN(const std::string hash, fields.text("hash"));
  if (hash == plan_hash_text(plan)) return {};
  Error error = fields.bad("hash", fmt::format("it is '{}', but the hash of the content is {}",
                                               excerpt(hash), plan_hash_text(plan)));
  error.remedy = "if the change is intended, remove the line with \"hash\"";
  return error;
}

constexpr double kOuterLrMax = 10;

auto rounds_table(const Plan& plan) {
  const auto island = json::list(json::whole(0, plan.rank_count() - 1), 1, kRanksMax);
  return json::table<RoundsPlan>(
      json::required("islands", &RoundsPlan::islands, json::list(island, 2, kRanksMax)),
      json::required("steps", &RoundsPlan::steps, json::whole(1, kRoundStepsMax)),
      json::optional("overlap_steps", &RoundsPlan::overlap_steps, json::whole(0, kRoundStepsMax)),
      json::required("start_steps", &RoundsPlan::start_steps, json::whole(0)),
      json::optional("start_island", &RoundsPlan::start_island, json::whole(-1, kRanksMax)),
      json::required("codec", &RoundsPlan::codec, json::word(kCodecOthers)),
      json::required("outer_lr", &RoundsPlan::outer_lr, json::quantity(kOuterLrMax)),
      json::required("outer_momentum", &RoundsPlan::outer_momentum, json::quantity(1)));
}

Result<void> check_rounds(const JsonFields& fields, const Plan& plan) {
  if (!plan.rounds) return {};
  std::vector<std::vector<Rank>> owners;
  for (const ChunkPlan& chunk : plan.chunks) owners.push_back(micro_batch_owners(chunk));
  const std::string problem = rounds_problem(*plan.rounds, plan.rank_count(), owners);
  return problem.empty() ? Result<void>() : fields.bad("rounds", problem);
}

json::Whole micro_batches_per_step(const Plan& plan) {
  return {1, kStepSamplesMax / std::max(plan.micro_batch, 1)};
}

constexpr auto kPlanTable = json::table<Plan>(
    json::header(kPlanFormat, kPlanVersion),
    json::written("hash", plan_hash_text),
    json::required("model_hash", &Plan::model_hash, json::word("")),
    json::required("schedule", &Plan::schedule, json::text()),
    json::check(check_schedule),
    json::required("gradient_codec", &Plan::gradient_codec, json::word(kCodecOthers)),
    json::required("micro_batch", &Plan::micro_batch, json::whole(1, kStepSamplesMax)),
    json::required("micro_batches", &Plan::micro_batches, micro_batches_per_step),
    json::required("predicted_step_s", &Plan::predicted_step_s, json::quantity(kStepSecondsMax)),
    json::required("ranks", &Plan::ranks, json::list(kRankTable, 1, kRanksMax)),
    json::required("chunks", &Plan::chunks, chunk_list),
    json::check(check_chunks),
    json::optional("rounds", &Plan::rounds, rounds_table),
    json::check(check_rounds),
    json::required("notes", &Plan::notes, json::list(json::text(), 0, kNotesMax)),
    json::check(check_hash));

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
  return kPlanTable.write(plan);
}

Result<Plan> parse_plan(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  return plan_from_json(json, JsonSource(source, text));
}

Result<Plan> plan_from_json(const Json& json, const JsonSource& source) {
  return kPlanTable.read(JsonFields(json, source, ErrorCode::kConfig));
}

std::string precision_of(const Plan& plan) {
  const auto asked = std::ranges::find_if(
      plan.ranks, [](const RankPlan& rank) { return rank.compute_dtype != kFp32Dtype; });
  return asked == plan.ranks.end() ? kFp32Dtype : asked->compute_dtype;
}

DeviceCapabilities capabilities_of(const Plan& plan) {
  DeviceCapabilities common;
  for (const RankPlan& rank : plan.ranks) common = common & capabilities_of(rank.device);
  return common;
}

std::string times_label(const Plan& plan) {
  for (const RankPlan& rank : plan.ranks) {
    const std::string_view label = label_of(rank.device);
    if (!label.empty()) return fmt::format(" ({})", label);
  }
  return "";
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
  if (plan.rounds) {
    const RoundsPlan& rounds = *plan.rounds;
    text += fmt::format(" {} {} {} {} {} {} {}", rounds.islands.size(), rounds.steps,
                        rounds.start_steps, rounds.start_island, counted(rounds.codec),
                        rounds.outer_lr, rounds.outer_momentum);
    for (const int island : islands_by_rank(plan.rounds)) text += fmt::format(" {}", island);
    // Plans without overlap have the hash of versions that did not know it.
    if (rounds.overlap_steps > 0) text += fmt::format(" overlap {}", rounds.overlap_steps);
  }
  return hash64(text);
}

}  // namespace motley

// Plan: the decision who computes what, as a value with a hash that every rank checks.
// Format: docs/formats/plan.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "base/json_position.h"
#include "base/result.h"

namespace motley {

inline constexpr std::int64_t kLinkMbpsMax = 1'000'000'000;
// What every device computes products in, and all that nobody asks for more.
inline constexpr const char* kPlainNumbers = "fp32";
// What products can be computed in.
inline constexpr std::array<const char*, 3> kProductNumbers = {kPlainNumbers, "bf16", "fp16"};

// A worker process and where it runs.
struct RankPlan {
  std::string machine;
  std::string device;
  int threads = 1;
  // Predicted:
  double compute_s = 0;           // busy time in a step
  std::int64_t memory_bytes = 0;  // peak
  // Of the machine towards others of the plan, as it counts on it: sums are shared out by it. 0 =
  // unknown.
  std::int64_t link_mbps = 0;
  // That its products are computed in, as far as the profile tells: "fp32", or those that
  // train.precision asked for when the plan was made.
  std::string numbers = kPlainNumbers;
};

// What one micro-batch takes of a rank's time in a chunk, in whole microseconds: the times by which
// split backward is scheduled (pipeline/schedule/list_schedule.h).
struct PassTimes {
  std::int64_t forward = 1;
  std::int64_t backward_input = 1;
  std::int64_t backward_weight = 1;

  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

// A rank that holds a chunk, and how many micro-batches of each step it takes.
struct Replica {
  Rank rank;
  int micro_batches = 0;
  PassTimes times = {};  // split
};

// A contiguous run of layers and the ranks that hold it. Chunks cover the model in order.
struct ChunkPlan {
  int first_layer = 0;
  int layer_count = 0;
  // At least one; ranks ascend; each takes one micro-batch or more, together Plan::micro_batches.
  std::vector<Replica> replicas;
  std::string codec = "none";  // of the boundary after this chunk, both directions
  // Forward keeps only the chunk's input; backward runs forward again first.
  bool recompute = false;
  // 1F1B and split: micro-batches between forward and backward in this chunk, not growing towards
  // the end of the model; 0 (in all chunks) = the chunks behind it plus one.
  int in_flight = 0;
  // Split: microseconds that a message over the boundary after this chunk keeps a link busy.
  std::int64_t hop_us = 0;
  // Split: micro-batches that a replica may keep between the two parts of backward; 0 (in all
  // chunks) = as many as are in flight in chunk 0.
  int queued_weights = 0;

  [[nodiscard]] bool is_on(Rank rank) const;
};

// Chunks times micro-batches of a step, at most: the schedule, which every rank keeps, grows with
// them.
inline constexpr std::int64_t kChunkPassesMax = 1 << 22;

struct Plan {
  std::string model_hash;               // ModelSpec::hash()
  std::vector<RankPlan> ranks;          // [Rank]
  std::vector<ChunkPlan> chunks;        // [ChunkId]
  int micro_batch = 1;                  // samples
  int micro_batches = 1;                // per step
  std::string schedule = "1f1b";        // gpipe | 1f1b | split
  std::string gradient_codec = "none";  // of sums of gradients, between machines
  double predicted_step_s = 0;
  std::vector<std::string> notes;  // what was decided and why, one line each

  [[nodiscard]] int rank_count() const { return static_cast<int>(ranks.size()); }

  [[nodiscard]] int chunk_count() const { return static_cast<int>(chunks.size()); }
};

// The train.precision that the plan is made for.
[[nodiscard]] std::string precision_of(const Plan& plan);

// Whether the plan is a rehearsal: its devices are virtual (is_virtual_device).
[[nodiscard]] bool is_virtual(const Plan& plan);

// The rank that computes each micro-batch of the chunk, [MicroId]: one of its replicas
// (plan/assign_micro_batches.h).
[[nodiscard]] std::vector<Rank> micro_batch_owners(const ChunkPlan& chunk);

[[nodiscard]] Json plan_to_json(const Plan& plan);
// Reads a plan file's text. kCorrupt when it is not JSON, kConfig as plan_from_json; with line and
// column.
[[nodiscard]] Result<Plan> parse_plan(std::string_view text, const std::string& source);
// kConfig when `json` is not a plan of a version we read or contradicts itself (layers not covered
// exactly once, a rank without a chunk, shares that miss a micro-batch, …).
[[nodiscard]] Result<Plan> plan_from_json(const Json& json, const JsonSource& source);

// Of everything that decides what is computed and sent; predictions and notes do not count.
[[nodiscard]] std::uint64_t plan_hash(const Plan& plan);
// The same as files have it.
[[nodiscard]] std::string plan_hash_text(const Plan& plan);

}  // namespace motley

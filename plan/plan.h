// Plan: the assignment of layers to ranks, as a value with a hash that every rank checks. Format:
// docs/formats/plan.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "base/json_position.h"
#include "base/result.h"
#include "plan/device_kinds.h"
#include "plan/rounds/rounds_plan.h"

namespace motley {

inline constexpr std::int64_t kLinkMbpsMax = 1'000'000'000;
// The default compute dtype of matrix products, which every device supports.
inline constexpr const char* kFp32Dtype = "fp32";
// The possible compute dtypes of matrix products.
inline constexpr std::array<const char*, 3> kProductDtypes = {kFp32Dtype, "bf16", "fp16"};

// A worker process and where it runs.
struct RankPlan {
  std::string machine;
  std::string device;
  int threads = 1;
  // Predicted:
  double compute_s = 0;           // busy time in a step
  std::int64_t memory_bytes = 0;  // peak
  // The expected bandwidth of the machine to the plan's other machines, by which all-reduces are
  // divided among machines; 0 = unknown.
  std::int64_t link_mbps = 0;
  // Its compute dtype, as far as the profile shows: "fp32", or the train.precision for which the
  // plan was made.
  std::string compute_dtype = kFp32Dtype;
};

// The time of one micro-batch on a rank in a chunk, in whole microseconds; input of the split
// (zero-bubble) schedule (pipeline/schedule/list_schedule.h).
struct PassTimes {
  std::int64_t forward = 1;
  std::int64_t backward_input = 1;
  std::int64_t backward_weight = 1;

  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

// A rank with a chunk, and the number of micro-batches that it computes in each step.
struct Replica {
  Rank rank;
  int micro_batches = 0;
  PassTimes times = {};  // for split
};

// A contiguous run of layers and its ranks. Chunks cover the model in order.
struct ChunkPlan {
  int first_layer = 0;
  int layer_count = 0;
  // At least one; by ascending rank; each has one micro-batch or more, together
  // Plan::micro_batches.
  std::vector<Replica> replicas;
  std::string codec = "none";  // of the boundary after this chunk, both directions
  // Activation checkpointing: forward saves only the chunk's input; backward runs forward again
  // first.
  bool recompute = false;
  // 1F1B and split: limit of micro-batches between forward and backward in this chunk, not
  // increasing towards the end of the model; 0 (in all chunks) = the number of later chunks plus
  // one.
  int in_flight = 0;
  // Split: microseconds for which a message over the boundary after this chunk occupies a link.
  std::int64_t hop_us = 0;
  // Split: limit of micro-batches per replica between the two parts of backward; 0 (in all chunks)
  // = those in flight in chunk 0.
  int queued_weights = 0;

  [[nodiscard]] bool is_on(Rank rank) const;
};

// The maximum of chunks times micro-batches per step, to which the size of the schedule on every
// rank is proportional.
inline constexpr std::int64_t kChunkPassesMax = 1 << 22;

struct Plan {
  std::string model_hash;               // ModelSpec::hash()
  std::vector<RankPlan> ranks;          // [Rank]
  std::vector<ChunkPlan> chunks;        // [ChunkId]
  int micro_batch = 1;                  // samples
  int micro_batches = 1;                // per step
  std::string schedule = "1f1b";        // ScheduleFacts::name
  std::string gradient_codec = "none";  // of all-reduces of gradients, between machines
  std::optional<RoundsPlan> rounds;     // nullopt: every step is synchronous
  double predicted_step_s = 0;
  std::vector<std::string> notes;  // decisions and their reasons, one line each

  [[nodiscard]] int rank_count() const { return static_cast<int>(ranks.size()); }

  [[nodiscard]] int chunk_count() const { return static_cast<int>(chunks.size()); }
};

// The train.precision for which the plan is made.
[[nodiscard]] std::string precision_of(const Plan& plan);

// What all devices of the plan can do.
[[nodiscard]] DeviceCapabilities capabilities_of(const Plan& plan);
// Shown after its times: " (virtual)" by DeviceKind::label, "" without one.
[[nodiscard]] std::string times_label(const Plan& plan);

// The owner of each micro-batch of the chunk, [MicroId]: one of its replicas
// (plan/assign_micro_batches.h).
[[nodiscard]] std::vector<Rank> micro_batch_owners(const ChunkPlan& chunk);

[[nodiscard]] Json plan_to_json(const Plan& plan);
// Parses a plan file's text. kCorrupt if it is not JSON, kConfig as plan_from_json; with line and
// column.
[[nodiscard]] Result<Plan> parse_plan(std::string_view text, const std::string& source);
// kConfig if `json` is not a plan of a supported version or is inconsistent (layers not covered
// exactly once, a rank without a chunk, shares that omit a micro-batch, …).
[[nodiscard]] Result<Plan> plan_from_json(const Json& json, const JsonSource& source);

// The hash of everything that determines computation and communication; without predictions and
// notes.
[[nodiscard]] std::uint64_t plan_hash(const Plan& plan);
// The same in the notation of files.
[[nodiscard]] std::string plan_hash_text(const Plan& plan);

}  // namespace motley

// The protocol between the launcher and a stage process: JSON objects, one per line; the launcher's
// on the worker's stdin, the worker's on its stdout. Documented in docs/formats/protocol.md. The
// same for workers started locally, through ssh or through any other prefix.
//
//   launcher -> worker   {"job": …}  {"addresses": […]}  {"lease": count}  {"finish": true}
//                        {"stop": true}; end of file = stop at once
//   worker -> launcher   {"event": "hello" | "address" | "ready" | "beat" | "step" | "shard" |
//                          "shard_failed" | "keeper" | "copied" | "store" | "data" | "trace" |
//                          "result" | "error" | "done", …}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/step_times.h"
#include "record/step_outcome.h"
#include "run_config/config.h"

namespace motley {

inline constexpr int kProtocolVersion = 11;

// The job of a rank that replicates its machine's run folder
// (worker/replication/folder_replicator.h).
struct ReplicatorJob {
  std::vector<Rank> copies_to;    // replicators that receive copies of the folder's files
  std::vector<Rank> copies_from;  // replicators that send it some
};

// Everything that a worker needs to start; sent first.
struct Job {
  std::string
      verb;  // train | profile | probe | allreduce | data | doctor | devices | generate | store
  Config config;
  Plan plan;            // train
  Rank rank;            // train
  double lease_s = 0;   // end after this time without a message from the launcher; 0 = never
  std::string run_dir;  // absolute, as the launcher sees it, or the machine's own folder
  std::string store;    // train: StoreLocation::id of run_dir; "" = the launcher's folder
  std::optional<ReplicatorJob> replicator;  // train
  std::string launch;       // train, store: launch_text of this launch; else empty, also for an
                            // inventory before the launch
  std::string run_id;       // train, store with "move": the run's read_run_id(); else empty
  std::string resume_from;  // checkpoint folder; "" = start fresh
  // train, resuming: earlier evaluations are of other data or another loss, so the record of the
  // checkpoint does not count.
  bool evaluations_begin_anew = false;
  std::int64_t stop_after = 0;  // save and end after this step; 0 = run to the end
  std::string bind_address;     // "" = loopback
  std::string interface;
  std::string secret;          // as TransportOptions::secret; new for each launch
  bool local_shortcut = true;  // as TransportOptions::local_shortcut
  std::string device = "cpu";
  int threads = 1;       // 0 = profile: as many as default_threads()
  double cpu_share = 0;  // profile and train: limit of the cores that they use; 0 = none
  std::optional<VirtualSpeed> virtual_speed;  // profile and train, on a device that is not measured
  Json options = Json::object();              // of the verb, except for train
};

// The epoch of this group's frames and handshakes: the number of the launch, or 1 without a
// training. REQUIRES: job.launch is empty or as launch_text.
[[nodiscard]] std::uint32_t epoch_of(const Job& job);

[[nodiscard]] Json job_to_json(const Job& job);
[[nodiscard]] Result<Job> job_from_json(const Json& json, const std::string& source);

// An evaluation of the held-out data, as one rank knows it.
struct Evaluation {
  std::int64_t tokens = 0;                   // of all batches; 0: none had a target
  double loss = 0;                           // mean over the tokens; NaN without tokens
  std::optional<double> accuracy;            // as in StepOutcome
  double bytes_per_token = 0;                // of the held-out text; 0 if unknown to this rank
  std::optional<double> top5_accuracy = {};  // share of targets among the five highest scores
};

// One rank's report of one step.
struct StepReport {
  std::int64_t step = 0;  // from 1
  StepOutcome outcome;
  double step_s = 0;
  StepTimes times;
  std::uint64_t wire_bytes = 0;  // sent by this rank

  // The part of wire_bytes sent to one peer.
  struct Sent {
    Rank to;
    std::uint64_t bytes = 0;

    friend bool operator==(const Sent&, const Sent&) = default;
  };

  std::vector<Sent> sent;         // by ascending rank
  std::int64_t memory_bytes = 0;  // resident after the step; 0 = unknown
  std::optional<Evaluation> evaluation;
};

[[nodiscard]] Json step_to_json(const StepReport& report);
[[nodiscard]] Result<StepReport> step_from_json(const Json& json, const std::string& source);

// Without `key`, which refers to the configuration on the machine that has it.
[[nodiscard]] Json error_to_json(const Error& error);
[[nodiscard]] Error error_from_json(const Json& json);

}  // namespace motley

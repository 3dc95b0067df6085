// What the launcher and a stage process say to each other: JSON objects, one a line, the launcher's
// on the worker's stdin, the worker's on its stdout. Documented in docs/formats/protocol.md.
// The same bytes whether the worker was started here, through ssh or through any other prefix.
//
//   launcher -> worker   {"job": …}  {"addresses": […]}  {"lease": count}  {"finish": true}
//                        {"stop": true}; end of file = stop at once
//   worker -> launcher   {"event": "hello" | "address" | "ready" | "beat" | "step" | "shard" |
//                          "shard_failed" | "keeper" | "kept" | "store" | "data" | "trace" |
//                          "result" | "error" | "done", …}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "job/config.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/wait_times.h"

namespace motley {

inline constexpr int kProtocolVersion = 10;

// What a rank does that keeps its machine's run folder (worker/keep/folder_keeper.h).
struct KeeperJob {
  std::vector<Rank> copies_to;    // keepers that get copies of what lies in the folder
  std::vector<Rank> copies_from;  // and those of which it gets some
};

// Everything a worker needs to start; sent first.
struct Job {
  std::string verb;  // train | profile | probe | allreduce | doctor | devices | generate | store
  Config config;
  Plan plan;                        // train
  Rank rank;                        // train
  double lease_s = 0;               // without a word from the launcher for so long, end; 0 = never
  std::string run_dir;              // absolute, as the launcher sees it, or of a folder of its own
  std::string store;                // train: StorePlace::id of run_dir; "" = it is the launcher's
  std::optional<KeeperJob> keeper;  // train
  std::string launch;       // train, store: launch_text of this launch of the run; else empty,
                            // also of a look before there is one
  std::string run_id;       // train, store with "move": as read_run_id(), of the run; else empty
  std::string resume_from;  // checkpoint folder; "" = start fresh
  std::int64_t stop_after = 0;  // save and end after this step; 0 = run to the end
  std::string bind_address;     // "" = loopback
  std::string interface;
  std::string secret;          // as TransportOptions::secret; a new one for each launch
  bool local_shortcut = true;  // as TransportOptions::local_shortcut
  std::string device = "cpu";
  int threads = 1;                            // 0 = profile: as many as default_threads()
  std::optional<VirtualSpeed> virtual_speed;  // profile and train, on a virtual device
  Json options = Json::object();              // of the verb: all but train
};

// What this group's frames and handshakes carry: the number of the launch, 1 where nothing is
// trained. REQUIRES: job.launch is empty or as launch_text.
[[nodiscard]] std::uint32_t epoch_of(const Job& job);

[[nodiscard]] Json job_to_json(const Job& job);
[[nodiscard]] Result<Job> job_from_json(const Json& json, const std::string& source);

// One rank's account of one step.
struct StepReport {
  std::int64_t step = 0;  // 1 is the first
  double loss = 0;        // mean over the tokens of the global batch; the same on every rank
  std::int64_t tokens = 0;
  std::optional<double> accuracy;  // the share of the tokens predicted right, where counted
  double step_s = 0;
  double lr = 0;
  double grad_norm = 0;
  bool skipped = false;
  std::optional<double> gradient_scale;  // in fp16
  std::uint64_t wire_bytes = 0;          // sent by this rank
  double compute_s = 0;                  // all but waiting: of it
  double codec_s = 0;                    // encoding and decoding what crosses between stages
  double optimizer_s = 0;                // updating the parameters
  WaitTimes wait_s;
  std::int64_t memory_bytes = 0;  // resident after the step; 0 = unknown

  // Of wire_bytes what one peer got.
  struct Sent {
    Rank to;
    std::uint64_t bytes = 0;

    friend bool operator==(const Sent&, const Sent&) = default;
  };

  std::vector<Sent> sent;  // ranks ascend
  bool evaluated = false;
  std::int64_t eval_tokens = 0;  // that the evaluation had; 0: none, and so no loss
  double eval_loss = 0;
  std::optional<double> eval_accuracy;
  double eval_bytes_per_token = 0;  // 0 = unknown
};

[[nodiscard]] Json step_to_json(const StepReport& report);
[[nodiscard]] Result<StepReport> step_from_json(const Json& json, const std::string& source);

// Without `key`, which is of the machine where the configuration is.
[[nodiscard]] Json error_to_json(const Error& error);
[[nodiscard]] Error error_from_json(const Json& json);

}  // namespace motley

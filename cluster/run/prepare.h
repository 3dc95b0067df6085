// Prepares a run from the user's request: all input errors are found here, before a process is
// started for long or a file of an earlier run is changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/lock/run_lock.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/restore_point.h"
#include "cluster/run/resume_hint.h"
#include "models/spec/initial_weights.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/planner.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "record/run_folder.h"
#include "run_config/config_io.h"

namespace motley {

class ProgressLine;

// The use of a run's measurements of its plan (cluster/replan/adaptation.h).
enum class ReplanMode {
  kOff,
  kReportOnly,  // report a better plan
  kSwitch,      // switch to a better plan
};

struct TrainingRequest {
  Config config;
  KeyOrigins origins = {};  // of the config's values
  Cluster cluster;
  int stages = 0;             // the exact number; 0 = the planner's choice
  std::optional<Plan> plan;   // if set, no plan is made
  Profile known_profile;      // devices that need no measuring
  bool measure_anew = false;  // ignore the machines' stored profiles
  bool resume = false;
  bool allow_changes = false;           // on resume, of the keys that affect the result
  std::int64_t stop_after = 0;          // save and end after this step; 0 = run to the end
  std::filesystem::path stage_program;  // motley-stage
  Commands commands;                    // for hints on how to resume
  bool have_answered = false;           // all machines of the cluster were just found usable
  // Machines left out of the cluster because they do not answer. The run then resumes from its
  // newest checkpoint or not at all.
  std::vector<std::string> away;
  // When the previous launch failed, as now_s(): the first step logs the time since then.
  std::optional<double> failed_at_s;
  ReplanMode replan_mode = ReplanMode::kReportOnly;
  int switches_done = 0;  // switches to better plans by earlier launches
  // The given plan may round differently than the run so far; logged.
  bool may_round_differently = false;
  bool quiet = false;  // no progress output
  // Displays the progress of work on a checkpoint's files; nullptr = none.
  ProgressLine* line = nullptr;
  // As WorkerGroupOptions::on_fault, for the workers that prepare the run.
  std::function<void(const PeerFault& fault)> on_fault;
  bool dry_run = false;  // check and plan, without changing the folder
};

struct PreparedRun {
  Config config;
  Cluster cluster;
  ModelSpec model;
  Profile profile;  // empty if the plan was given
  Plan plan;
  TransportChoice transport;
  RunFolder folder{""};
  std::string id;                 // RunFolder::ensure_run_id; set except in a dry run
  std::unique_ptr<RunLock> lock;  // of the folder; set except in a dry run
  std::optional<CheckpointInfo> resume_from;
  // If machines may have folders of their own: these folders, the checkpoint to resume, and the
  // folders from which their ranks read it. Ranks of a folder without an entry read resume_from.
  StoreInventory stores;
  std::optional<RestorePoint> restore_point;
  std::map<StoreId, std::filesystem::path> resume_folders;
  // The data of the resumed run, if it is known and must be the same.
  std::optional<DataFingerprint> saved_data;
  std::int64_t first_step = 1;
};

// The last step that this launch trains.
[[nodiscard]] std::int64_t last_step_of(const PreparedRun& run, const TrainingRequest& request);

// Checks the config, the plan or the planning request, and the data; locks the run folder for this
// launch (kPeer if another launcher uses it); and checks that every machine is usable. Only then
// measures devices if necessary, plans, and writes config.toml, plan.json and profile.json. Once
// the folder is locked, `log` is also written to it. A dry run neither locks nor changes the
// folder.
[[nodiscard]] Result<PreparedRun> prepare_run(const TrainingRequest& request, Log& log);

}  // namespace motley

// From what a person asked for to a run that is ready to start: everything that can be wrong is
// found here, before a process is started for long or a file of an earlier run is touched.
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
#include "cluster/run/resume_hint.h"
#include "cluster/run/run_folder.h"
#include "cluster/stores/machine_stores.h"
#include "cluster/stores/restore_point.h"
#include "job/config_io.h"
#include "models/spec/initial_weights.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/planner.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

class WorkLine;

// What a run does with what its own steps show of its plan (cluster/learn/adaptation.h).
enum class Learning {
  kOff,
  kTell,  // of a better plan
  kMove,  // to a better plan
};

struct TrainingRequest {
  Config config;
  KeyOrigins origins = {};  // of the config's values
  Cluster cluster;
  int stages = 0;             // exactly so many; 0 = the planner's choice
  std::optional<Plan> plan;   // given instead of being made
  Profile known_profile;      // devices that need no measuring
  bool measure_anew = false;  // also what machines have kept
  bool resume = false;
  bool allow_changes = false;           // on resume, of what the run's numbers depend on
  std::int64_t stop_after = 0;          // save and end after this step; 0 = run to the end
  std::filesystem::path stage_program;  // motley-stage
  Commands commands;                    // by which the person can go on
  bool have_answered = false;           // all machines of the cluster, just now: can be used
  // Machines that were left out of the cluster as they do not answer: the run then goes on from its
  // newest checkpoint or not at all.
  std::vector<std::string> away;
  // When the launch before this one failed, as now_s(): the first step says how long ago.
  std::optional<double> failed_at_s;
  Learning learning = Learning::kTell;
  int moves_done = 0;                // to better plans, by launches before this one
  bool may_round_otherwise = false;  // the plan that is given, than the run so far; it is told
  bool quiet = false;                // no progress
  // Where a person sees how far work on a checkpoint's files is; nullptr = nowhere.
  WorkLine* line = nullptr;
  // As WorkerGroupOptions::on_fault, of workers that get the run ready.
  std::function<void(const PeerFault& fault)> on_fault;
  bool dry_run = false;  // look and plan, and leave the folder as it is
};

struct PreparedRun {
  Config config;
  Cluster cluster;
  ModelSpec model;
  Profile profile;  // empty when the plan was given
  Plan plan;
  TransportChoice transport;
  RunFolder folder{""};
  std::string id;                 // RunFolder::keep_run_id; set unless it was a dry run
  std::unique_ptr<RunLock> lock;  // of the folder; set unless it was a dry run
  std::optional<CheckpointInfo> resume_from;
  // Where machines may have folders of their own: these, what is resumed, and the folders that
  // their ranks read it from; those of a folder that is not named read resume_from.
  Stores stores;
  std::optional<RestorePoint> restore_point;
  std::map<StoreId, std::filesystem::path> resume_folders;
  // Of the run that is resumed, where it is known and must be its data still.
  std::optional<DataMark> saved_data;
  std::int64_t first_step = 1;
};

// The last step that this launch trains.
[[nodiscard]] std::int64_t last_step_of(const PreparedRun& run, const TrainingRequest& request);

// Checks the config, the plan or what is asked of it and the data, takes the run folder for this
// launch (kPeer when another launcher has it), and looks whether every machine answers; only then
// measures devices where needed, plans, and writes config.toml, plan.json and profile.json. Once
// the folder is taken, `log` is kept in it. A dry run neither takes nor changes the folder.
[[nodiscard]] Result<PreparedRun> prepare_run(const TrainingRequest& request, Log& log);

}  // namespace motley

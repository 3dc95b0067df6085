// A run that is ready to train: the results of its preparation (cluster/prepare/prepare_run.h).
// Values that are not modified once they are made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/restore_point.h"
#include "data/source.h"
#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "record/run_folder.h"
#include "run_config/config.h"

namespace motley {

// What is trained, and by which plan.
struct PlannedRun {
  Config config;  // with the plan's micro-batch and threads
  ModelSpec model;
  Cluster cluster;
  Profile profile;  // empty if the plan was given
  Plan plan;
  TransportChoice transport;
};

// The steps that a launch trains.
struct StepRange {
  std::int64_t first = 1;
  std::int64_t last = 0;
};

// The checkpoint from which a launch continues.
struct ResumedCheckpoint {
  CheckpointInfo info;
  // The data of the run so far, if it is known and must be the same.
  std::optional<DataFingerprint> data;
  // Its record of evaluations; nullopt: it has none, or one that later evaluations cannot be
  // compared with.
  std::optional<EvaluationRecord> evaluations = {};
};

// If machines may have folders of their own: these folders, the checkpoint to resume, and the
// folders from which their ranks read it. Ranks of a folder without an entry read
// ResumedCheckpoint::info.
struct RunShards {
  StoreInventory stores;
  std::optional<RestorePoint> restore_point;
  std::map<StoreId, std::filesystem::path> resume_folders;
};

struct ReadyRun {
  PlannedRun planned;
  StepRange steps;
  // The data from which the steps were counted, if the length is given in epochs.
  std::optional<DataIdentity> counted_data = {};
  std::optional<ResumedCheckpoint> resumed;  // nullopt = the run begins
  RunFolder folder;
  std::string id;      // RunFolder::ensure_run_id; "" in a dry run
  std::string launch;  // the lock's RunLock::launch(); "" in a dry run
  RunShards shards;
};

// One launch of a run.
struct Launch {
  ReadyRun run;
  std::unique_ptr<RunLock> lock;  // of run.folder; null in a dry run
};

}  // namespace motley

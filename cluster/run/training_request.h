// The request of a training, grouped by matter: what to train, how a run continues, and how the
// launch accesses machines and reports. Given by the user, and by the supervisor for later
// launches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster/planning/resolve_plan.h"
#include "cluster/reach/peer_fault.h"
#include "cluster/run/resume_hint.h"
#include "models/spec/initial_weights.h"

namespace motley {

class ProgressLine;

struct ResumeRequest {
  bool allow_changes = false;  // of the keys that affect the result
  // The given plan may round differently than the run so far; logged.
  bool may_round_differently = false;
  // Machines left out of the cluster because they do not answer. The run then resumes from its
  // newest checkpoint or not at all.
  std::vector<std::string> away;
  // When the previous launch failed, as now_s(): the first step logs the time since then.
  std::optional<double> failed_at_s;
};

struct MachineAccess {
  std::filesystem::path stage_program;  // motley-stage
  bool have_answered = false;           // all machines of the cluster were just found usable
  // As WorkerGroupOptions::on_fault, for the workers that prepare the run.
  std::function<void(const PeerFault& fault)> on_fault;
};

// The use of a run's measurements of its plan (cluster/replan/adaptation.h).
enum class ReplanMode {
  kOff,
  kReportOnly,  // report a better plan
  kSwitch,      // switch to a better plan
};

struct ReplanPolicy {
  ReplanMode mode = ReplanMode::kReportOnly;
  int switches_done = 0;  // switches to better plans by earlier launches
};

struct ProgressDisplay {
  bool quiet = false;  // no progress output
  // Displays the progress of work on a checkpoint's files; nullptr = none.
  ProgressLine* line = nullptr;
};

struct TrainingRequest {
  PlanRequest planning;                 // what to train, on which devices
  KeyOrigins origins = {};              // of the config's values
  bool measure_anew = false;            // ignore the machines' stored profiles
  std::optional<ResumeRequest> resume;  // nullopt = a new run
  std::int64_t stop_after = 0;          // save and end after this step; 0 = run to the end
  bool dry_run = false;                 // check and plan, without changing the folder
  MachineAccess machines;
  ReplanPolicy replan;
  ProgressDisplay display;
  Commands commands;  // for hints on how to resume
};

}  // namespace motley

// Examines every machine of a cluster: whether a worker starts there, what it finds, and whether
// the machines reach each other. The interpretation is in cluster/diagnose/diagnosis.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cluster/diagnose/probe.h"
#include "plan/cluster.h"
#include "protocol/machine_facts.h"
#include "run_config/config.h"

namespace motley {

struct DoctorOptions {
  CommConfig comm;
  // Absolute; the folder of coming runs, or its nearest existing parent.
  std::filesystem::path run_folder;
  std::filesystem::path missing_folder;  // the requested folder, if it does not exist yet
};

struct InspectedMachine {
  std::optional<MachineFacts> facts;
  std::optional<Error> failure;  // why `facts` is empty
  double clock_ahead_s = 0;      // relative to the launcher's; accurate to the delay of one message
  std::string unwritable;        // as FirstResponse::unwritable
};

struct Inspection {
  DoctorOptions asked;
  std::string version;                     // of this program
  std::string build;                       // of motley-stage here, as build_of()
  std::optional<Error> mark_failure;       // why no mark file could be written to the run folder
  std::vector<InspectedMachine> machines;  // [index in the cluster]
  // The result of a short probe, if all machines answered and there are several.
  std::optional<ProbeReport> links;
  std::optional<Error> links_failure;
};

// Checks all machines in parallel, then starts a worker on each usable one in turn, and finally one
// on all of them together that connect by the transport of `options`. Announces each stage on
// standard error. Writes a temporary mark file to the run folder. The failure of a machine is part
// of the result; kInterrupted and kTerminated are errors.
[[nodiscard]] Result<Inspection> inspect(const Cluster& cluster,
                                         const DoctorOptions& options,
                                         const std::filesystem::path& program,
                                         const Log& log);

// Replaces "auto" devices by those found on the machines that answered.
void settle_by_inspection(Cluster& cluster, const Inspection& inspection);

}  // namespace motley

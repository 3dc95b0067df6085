// Looking at every machine of a cluster: whether a worker starts there, what it finds, and whether
// the machines reach each other. What it means is judged elsewhere (cluster/examine/diagnosis.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cluster/examine/probe.h"
#include "job/config.h"
#include "plan/cluster.h"
#include "protocol/machine_facts.h"

namespace motley {

struct DoctorOptions {
  CommConfig comm;
  std::filesystem::path run_folder;      // absolute; that of coming runs, or one that holds it
  std::filesystem::path missing_folder;  // the one that was meant, where it is not there yet
};

struct ExaminedMachine {
  std::optional<MachineFacts> facts;
  std::optional<Error> failure;  // why there are none
  double clock_ahead_s = 0;      // of this machine's, wrong by at most the way of one message
  std::string unwritable;        // as FirstAnswer::unwritable
};

struct Examination {
  DoctorOptions asked;
  std::string version;                    // of this program
  std::string build;                      // of motley-stage here, as build_of()
  std::optional<Error> mark_failure;      // why no mark could be left in the run folder
  std::vector<ExaminedMachine> machines;  // [index in the cluster]
  // Where all machines answered and there are several: what a short probe found.
  std::optional<ProbeReport> links;
  std::optional<Error> links_failure;
};

// Asks all machines at once whether they can be used, starts a worker on each that can, one after
// another, then one on all of them at once that join by
// the transport of `options`, and says on standard error which while it takes. Leaves a file in the
// run folder for as long. What goes wrong with a machine is in the result; kInterrupted and
// kTerminated are errors.
[[nodiscard]] Result<Examination> examine(const Cluster& cluster,
                                          const DoctorOptions& options,
                                          const std::filesystem::path& program,
                                          const Log& log);

// Devices that are "auto" become those of the machines that answered.
void settle_by_examination(Cluster& cluster, const Examination& examination);

}  // namespace motley

// What several commands read: the configuration, the cluster, profiles, and where motley-stage is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/follow/run_report.h"
#include "job/config_io.h"
#include "partitioner/advise/calibration.h"
#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "tools/arguments.h"

namespace motley {

// Options that mean the same in every command that takes them.
[[nodiscard]] OptionSpec set_option();
[[nodiscard]] OptionSpec cluster_option();
[[nodiscard]] OptionSpec links_option();
[[nodiscard]] OptionSpec profile_option();
[[nodiscard]] OptionSpec measure_option();
[[nodiscard]] OptionSpec pin_option();
[[nodiscard]] OptionSpec json_option();

// CONFIG with the environment's MOTLEY_* and --set on top. Where a command has them, --run sets
// run.dir and each --pin is added to parallel.pins.
[[nodiscard]] Result<ResolvedConfig> read_config(const std::filesystem::path& path,
                                                 const Arguments& arguments);

// An error that names a key to change gets the place where that key was set.
[[nodiscard]] Error with_place_of_key(Error error, const ResolvedConfig& resolved);

// --cluster's file, else this machine with what devices it has, `devices` or more; with the speeds
// of --links. Where that is "auto", they are to be settled (cluster/examine/automatic_devices.h).
[[nodiscard]] Result<Cluster> read_cluster(const Arguments& arguments,
                                           int devices,
                                           Mixture mixture = Mixture::kRefused);

// All --profile files together; a later one replaces an earlier one's devices.
[[nodiscard]] Result<Profile> read_profiles(const Arguments& arguments);
// The same for a job; kConfig where one was measured in another precision.
[[nodiscard]] Result<Profile> read_profiles(const Arguments& arguments, const TrainConfig& train);

// This machine twice, for measurements without a cluster file.
[[nodiscard]] Cluster loopback_pair();

// kConfig when there is nothing of that name, kCorrupt where this process may not look.
[[nodiscard]] Result<void> check_exists(const std::filesystem::path& path);

// kConfig when that is no folder of a run: it has no checkpoints, and no launcher has ever been in
// it.
[[nodiscard]] Result<void> check_is_run(const std::filesystem::path& path);

// A plan named on the command line; kConfig when there is no such file, else as read_plan.
[[nodiscard]] Result<Plan> read_named_plan(const std::filesystem::path& path);

// The checkpoint that a path names: itself, or the newest one of the run whose folder it is.
// kConfig when it is neither. Its bytes are not looked at.
[[nodiscard]] Result<std::filesystem::path> named_checkpoint(const std::filesystem::path& path);

// The report of a run, by its folder; kConfig when the run has not ended or there is none.
[[nodiscard]] Result<RunReport> read_named_report(const std::filesystem::path& run);

// What a run measured of its plan, by its folder; kConfig as read_named_report, and where its files
// are not of one plan.
[[nodiscard]] Result<RunMeasurement> read_measurement(const std::filesystem::path& run);

// What the runs of --learn measured.
[[nodiscard]] Result<std::vector<RunMeasurement>> read_measurements(const Arguments& arguments);

// motley-stage beside this program. kConfig when it is not there (a build without LibTorch).
[[nodiscard]] Result<std::filesystem::path> stage_program();

// That the files which these options name, as far as they are given, can be written: asked before
// the work whose results they take.
[[nodiscard]] Result<void> check_outputs(const Arguments& arguments,
                                         std::initializer_list<const char*> options);

}  // namespace motley

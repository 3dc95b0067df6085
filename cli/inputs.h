// Common inputs of several commands: configuration, cluster, profiles, and the path of
// motley-stage.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "partitioner/report/calibration.h"
#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "record/run_report.h"
#include "run_config/config_io.h"

namespace motley {

// Options with the same meaning in every command.
[[nodiscard]] OptionSpec set_option();
[[nodiscard]] OptionSpec cluster_option();
[[nodiscard]] OptionSpec links_option();
[[nodiscard]] OptionSpec profile_option();
[[nodiscard]] OptionSpec measure_option();
[[nodiscard]] OptionSpec pin_option();
[[nodiscard]] OptionSpec transport_option();
[[nodiscard]] OptionSpec encrypt_option();
[[nodiscard]] OptionSpec json_option();

// CONFIG with the environment's MOTLEY_* and --set applied. For commands that take them, --run sets
// run.dir and each --pin is added to parallel.pins.
[[nodiscard]] Result<ResolvedConfig> read_config(const std::filesystem::path& path,
                                                 const Arguments& arguments);

// Adds to an error that names a key the place where that key was set.
[[nodiscard]] Error with_key_position(Error error, const ResolvedConfig& resolved);

// The cluster of --cluster, else this machine with its devices, at least `devices` of them; with
// the link speeds of --links. Devices "auto" remain to be resolved
// (cluster/diagnose/automatic_devices.h).
[[nodiscard]] Result<Cluster> read_cluster(const Arguments& arguments,
                                           int devices,
                                           Mixture mixture = Mixture::kRefused);

// All --profile files combined; a later file replaces the devices of an earlier one.
[[nodiscard]] Result<Profile> read_profiles(const Arguments& arguments);
// The same for a job; kConfig if a profile was measured in another precision.
[[nodiscard]] Result<Profile> read_profiles(const Arguments& arguments, const TrainConfig& train);

// This machine twice, for measurements without a cluster file.
[[nodiscard]] Cluster loopback_pair();

// kConfig if the path does not exist, kCorrupt if this process may not read it.
[[nodiscard]] Result<void> check_exists(const std::filesystem::path& path);

// kConfig if the path is not a run's folder: it has no checkpoints, and no launcher has ever used
// it.
[[nodiscard]] Result<void> check_is_run(const std::filesystem::path& path);

// A plan named on the command line; kConfig if the file does not exist, else as read_plan.
[[nodiscard]] Result<Plan> read_named_plan(const std::filesystem::path& path);

// The checkpoint that RUN/checkpoints/best (the one with the lowest held-out loss,
// checkpoint.keep_best) or RUN/checkpoints/latest names; any other path unchanged. kConfig if there
// is no such checkpoint.
[[nodiscard]] Result<std::filesystem::path> checkpoint_by_word(const std::filesystem::path& path);

// The checkpoint that a path names: the path itself or one by checkpoint_by_word(), or the newest
// checkpoint of that run's folder. kConfig if it is neither. Does not verify its contents.
[[nodiscard]] Result<std::filesystem::path> named_checkpoint(const std::filesystem::path& path);

// The report of a run, by its folder; kConfig if the run has not ended or does not exist.
[[nodiscard]] Result<RunReport> read_named_report(const std::filesystem::path& run);

// The measurements of a run for its plan, by its folder; kConfig as in read_named_report, and if
// its files belong to different plans.
[[nodiscard]] Result<RunMeasurement> read_measurement(const std::filesystem::path& run);

// The measurements of the --learn runs.
[[nodiscard]] Result<std::vector<RunMeasurement>> read_measurements(const Arguments& arguments);

// The motley-stage beside this program. kConfig if it does not exist (a build without LibTorch).
[[nodiscard]] Result<std::filesystem::path> stage_program();

// Checks that the files named by these options, if given, can be written, before the work whose
// results they store.
[[nodiscard]] Result<void> check_outputs(const Arguments& arguments,
                                         std::initializer_list<const char*> options);

}  // namespace motley

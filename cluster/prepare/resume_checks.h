// Checks that a resumed run is the same run, and gives it the run's own choices. Pure functions of
// a checkpoint's manifest and of the configuration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "run_config/config.h"

namespace motley {

// Checks that a checkpoint can be resumed under this configuration. kConfig if the model or the
// optimizer differs, if the checkpoint contains no optimizer state, or if no steps are left.
[[nodiscard]] Result<void> check_resume(const CheckpointState& saved,
                                        const std::filesystem::path& folder,
                                        const Config& config,
                                        const ModelSpec& model);

// kConfig if train.early_stopping has ended the run by this record, so that an uninterrupted run
// would not have continued.
[[nodiscard]] Result<void> check_not_stopped_early(const EvaluationRecord& record,
                                                   std::int64_t step,
                                                   const TrainConfig& train);

// Whether the held-out losses of the run so far can be compared with later ones: they are means of
// the same loss over as many held-out samples of the same choice.
[[nodiscard]] bool has_same_evaluations(const Config& before, const Config& config);

// The changed keys of the run's configuration that affect its result, as "key before -> after".
// data.changed = "accept" excludes the seed and the keys of [data]; `same_rates`
// (has_same_rates_so_far) those of the learning-rate schedule.
[[nodiscard]] std::vector<std::string> changes_of(const Config& before,
                                                  const Config& config,
                                                  bool same_rates = false);

// kConfig listing the changes, if there are any; the hint follows at its end.
[[nodiscard]] Result<void> refuse_changes(const std::vector<std::string>& changes,
                                          const std::string& hint = "");

// The configuration with the run's own choices for values left open: its micro-batch, if that
// divides the global batch, and its threads. `before` is the run's own.
[[nodiscard]] Config with_choices_of(const Config& before, Config config);

// The cluster with the thread counts of the plan's ranks, on machines that leave them open.
[[nodiscard]] Cluster with_threads_of(const Plan& plan, Cluster cluster);

}  // namespace motley

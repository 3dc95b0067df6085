// Checks that a resumed run is the same run: its model, its data, and a plan with the same
// rounding. Pure functions of a checkpoint's manifest.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "data/source.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/plan_options.h"
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

// The configuration with the run's own choices for values left open: its micro-batch, if that
// divides the global batch, and its threads. `before` is the run's own.
[[nodiscard]] Config with_choices_of(const Config& before, Config config);

// The changed keys of the run's configuration that affect its result, as "key before -> after".
// data.changed = "accept" excludes the seed and the keys of [data].
[[nodiscard]] std::vector<std::string> changes_of(const Config& before, const Config& config);

// kConfig listing the changes, if there are any; the hint follows at its end.
[[nodiscard]] Result<void> refuse_changes(const std::vector<std::string>& changes,
                                          const std::string& hint = "");

// Checks that the data is the run's. kData, with both, if it is not and data.changed refuses a
// change.
[[nodiscard]] Result<void> check_same_data(const DataFingerprint& saved,
                                           const DataIdentity& found,
                                           const DataConfig& data);

[[nodiscard]] DataFingerprint data_fingerprint(const DataIdentity& identity,
                                               const DataConfig& data);
[[nodiscard]] PlanFingerprint plan_fingerprint(const Plan& plan);

// The options restricted to plans that round like the run so far, if the configuration leaves this
// open: with its codecs, except for a removed one, and without replicas if it had none.
[[nodiscard]] PlanOptions options_like(const PlanFingerprint& saved,
                                       const Config& config,
                                       PlanOptions options);

// The cluster with the thread counts of the plan's ranks, on machines that leave them open.
[[nodiscard]] Cluster with_threads_of(const Plan& plan, Cluster cluster);

// "micro-batches of 4 samples instead of 2, …" if `now` rounds differently, else nothing.
[[nodiscard]] std::optional<std::string> plan_change(const PlanFingerprint& saved,
                                                     const PlanFingerprint& now);

// Whether both plans add each layer's gradient in the same order: equal parts of the batch on as
// many replicas, placed on machines in the same pattern. True for plans without replicas.
[[nodiscard]] bool rounds_alike(const Plan& a, const Plan& b);

}  // namespace motley

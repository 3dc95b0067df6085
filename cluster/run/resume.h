// What makes a resumed run the same run: its model, its data, and a plan that rounds alike.
// Pure functions over what a checkpoint's manifest keeps.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "data/source.h"
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/plan_options.h"
#include "plan/cluster.h"
#include "plan/plan.h"

namespace motley {

// Checks that a checkpoint can go on at all under this configuration. kConfig says what is in the
// way: another model, another optimizer, or nothing left to do.
[[nodiscard]] Result<void> check_resume(const CheckpointState& saved,
                                        const std::filesystem::path& folder,
                                        const Config& config,
                                        const ModelSpec& model);

// The configuration with what the run chose, where it leaves that open: its micro-batch, as long as
// that divides the global batch, and its threads. `before` is the run's own.
[[nodiscard]] Config with_choices_of(const Config& before, Config config);

// What the run will do otherwise than so far: keys of its configuration, and what a plan that is
// given rounds otherwise. data.changed = "accept" stands for the seed and the keys of [data].
[[nodiscard]] std::vector<std::string> changes_of(const Config& before, const Config& config);

// kConfig, which lists the changes, where there are any, and ends with the hint.
[[nodiscard]] Result<void> refuse_changes(const std::vector<std::string>& changes,
                                          const std::string& hint = "");

// Checks that the data is the run's. kData, with both, when it is not and data.changed refuses
// that.
[[nodiscard]] Result<void> check_same_data(const DataMark& saved,
                                           const DataIdentity& found,
                                           const DataConfig& data);

[[nodiscard]] DataMark data_mark(const DataIdentity& identity, const DataConfig& data);
[[nodiscard]] PlanMark plan_mark(const Plan& plan);

// The options narrowed to plans that round as the run did so far, where the configuration leaves it
// open: its codecs, but for one that is no longer a codec, and no replicas where it had none.
[[nodiscard]] PlanOptions options_like(const PlanMark& saved,
                                       const Config& config,
                                       PlanOptions options);

// The cluster with the threads that the plan's ranks had, on machines that leave them open.
[[nodiscard]] Cluster with_threads_of(const Plan& plan, Cluster cluster);

// "micro-batches of 4 samples instead of 2, …" where `now` rounds otherwise; nothing where it does
// not.
[[nodiscard]] std::optional<std::string> plan_change(const PlanMark& saved, const PlanMark& now);

// Whether both add each layer's gradient in the same order: the same parts of the batch on as many
// replicas, which stand in the same way on machines. True of plans without replicas.
[[nodiscard]] bool sums_alike(const Plan& a, const Plan& b);

}  // namespace motley

// Checkpoints: a checkpoint is a folder that exists completely or not at all. Format:
// docs/formats/checkpoint.md.
//
//   checkpoints/step-000100/
//     manifest.json                       written last; names every file with size and hash
//     config.json                         the model, as Hugging Face reads it (gpt2)
//     model.safetensors.index.json        which file holds which parameter
//     model-00001-of-00003.safetensors    parameters, one file per rank
//     optimizer-00001-of-00003.safetensors  "exp_avg/<name>", "exp_avg_sq/<name>" or
//     "momentum/<name>"; "residual.H/<name>" (checkpoint/residual_name.h)
//
// Each rank writes its own files into `.step-000100.LAUNCH.partial/`. When all have reported, the
// launcher commits: manifest, sync, rename. Tensors are keyed by parameter name, never by rank, so
// any later plan reads what it needs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/evaluations/evaluation_record.h"
#include "checkpoint/gradient_scale.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/work_observer.h"

namespace motley {

// A fingerprint of a run's training data, to detect whether another run uses the same.
struct DataFingerprint {
  std::string kind;         // text | tokens | synthetic
  std::uint64_t bytes = 0;  // of all tokens together
  std::string hash;         // of the token count and of sampled blocks: docs/formats/data.md
  double holdout = 0;

  friend bool operator==(const DataFingerprint&, const DataFingerprint&) = default;
};

// A fingerprint of the plan's properties that determine the rounding of sums.
struct PlanFingerprint {
  int micro_batch = 0;              // samples
  std::vector<std::string> codecs;  // of each boundary between chunks
  std::string gradient_codec;       // of all-reduces over replicas
  std::vector<int> replicas;        // [ChunkId]: number of replicas

  friend bool operator==(const PlanFingerprint&, const PlanFingerprint&) = default;
};

// In place of an optimizer's name in means of checkpoints, which earlier versions wrote: they
// contain no optimizer state.
inline constexpr const char* kNoOptimizer = "none";

// The state from which a run resumes exactly where it was saved.
struct CheckpointState {
  std::int64_t step = 0;      // finished steps
  std::uint64_t samples = 0;  // samples used so far: the position in the data
  std::uint64_t tokens = 0;
  std::int64_t optimizer_updates = 0;  // steps that were not skipped
  std::int64_t seed = 0;
  std::string model_hash;
  std::string model_family;
  std::string plan_hash;  // of the plan that wrote it; for information
  std::string optimizer;  // adamw | sgd; kNoOptimizer
  // Absent in checkpoints of versions without them.
  std::optional<DataFingerprint> data = {};
  std::optional<PlanFingerprint> plan = {};
  std::optional<GradientScale> gradient_scale = {};  // only of runs in fp16
  std::optional<EvaluationRecord> evaluations = {};  // only of runs that compare evaluations
  // [island] terms of the loss in the round so far; only of rounds with overlap.
  std::vector<double> round_tokens = {};
};

// One rank's part of a checkpoint.
struct Shard {
  int rank = 0;
  WrittenFile model;
  WrittenFile optimizer;
};

// CheckpointState::round_tokens of an object that may have them; kCorrupt if they are malformed.
[[nodiscard]] Result<std::vector<double>> round_tokens_from_json(const Json& json,
                                                                 const std::string& source);

[[nodiscard]] Json shard_to_json(const Shard& shard);
[[nodiscard]] Result<Shard> shard_from_json(const Json& json, const std::string& source);

struct Manifest {
  CheckpointState state;
  std::vector<WrittenFile> files;  // all files but the manifest; JSON files have no tensors
  std::string parameter_hash;  // over (name, content) of all parameters, sorted by name: equal for
                               // equal parameters, whatever the number of shards
  Json config;                 // the run's resolved configuration (config_to_json)
};

[[nodiscard]] std::filesystem::path checkpoint_folder(const std::filesystem::path& run_dir,
                                                      std::int64_t step);

// The checkpoint that one launch is writing for one step.
struct SaveLocation {
  std::filesystem::path run_dir;
  std::string launch;  // launch_text; "" only if no other process can write
  std::int64_t step = 0;
};

[[nodiscard]] std::filesystem::path partial_folder(const SaveLocation& location);

// Removes the partial folder if it exists. REQUIRES: no rank still writes into it.
[[nodiscard]] Result<void> discard_partial(const SaveLocation& location);

// Writes one rank's files into the partial folder, which is created if absent. moments: named
// "<moment>/<parameter>". Both lists may be empty. The files are not part of a checkpoint until
// commit_checkpoint. kDiverged, with nothing written, if a parameter is not finite. kCorrupt if the
// files cannot be written completely, e.g. on a full disk. `work` counts the bytes as they reach
// the disk; nullptr: not counted.
[[nodiscard]] Result<Shard> write_shard(const SaveLocation& location,
                                        int rank,
                                        int rank_count,
                                        const std::vector<TensorView>& parameters,
                                        const std::vector<TensorView>& moments,
                                        ProgressCounter* work = nullptr);

// Shards in folders of other machines: the reports of their ranks are not checked.
struct RemoteShards {
  std::set<int> ranks;
  std::uint64_t parameter_bytes = 0;  // over all ranks, local ones too
};

// Called once, by the launcher, with every rank's shard. Checks that each file exists with its size
// and tensors and that no parameter is in two files, writes index, config.json (hf_config; none if
// null) and manifest, syncs, renames. A committed checkpoint of the same step is replaced. After a
// crash at any point the step's old or new checkpoint is listed and complete.
[[nodiscard]] Result<std::filesystem::path> commit_checkpoint(const std::filesystem::path& run_dir,
                                                              const std::string& launch,
                                                              const CheckpointState& state,
                                                              const std::vector<Shard>& shards,
                                                              const Json& config,
                                                              const Json& hf_config,
                                                              const RemoteShards& elsewhere = {});

// kCorrupt, with a hint, if a folder of the run has a checkpoint's name but is none, or the folders
// cannot be read: existing data must not be treated as absent.
[[nodiscard]] Result<void> require_all_count(const std::filesystem::path& run_dir);

struct CheckpointInfo {
  std::int64_t step = 0;
  std::filesystem::path folder;
};

// Committed checkpoints, oldest first. A folder without a manifest does not count.
[[nodiscard]] std::vector<CheckpointInfo> list_checkpoints(const std::filesystem::path& run_dir);

// The checkpoint of a run's best evaluation (checkpoint.keep_best).
struct BestCheckpoint {
  CheckpointInfo info;
  BestEvaluation evaluation;
};

// The one that the newest checkpoint names as the best. If its save failed, the one that the next
// older checkpoint names, and so on. nullopt: none is named, or none that is named exists.
// Checkpoints whose manifest cannot be read are passed over. REQUIRES: `checkpoints` is a
// list_checkpoints.
[[nodiscard]] std::optional<BestCheckpoint> best_checkpoint(
    const std::vector<CheckpointInfo>& checkpoints);

// The rule for retained checkpoints.
struct RetentionPolicy {
  int newest = 0;                      // the newest so many; 0 = all
  std::int64_t every = 0;              // and those of steps that are multiples of it; 0 = none
  std::set<std::int64_t> always = {};  // and those of these steps
};

// The checkpoints that the rule does not retain, oldest first. REQUIRES: `checkpoints` is a
// list_checkpoints.
[[nodiscard]] std::vector<CheckpointInfo> dropped_checkpoints(
    const std::vector<CheckpointInfo>& checkpoints, const RetentionPolicy& rule);

// The steps that the rule retains.
[[nodiscard]] std::set<std::int64_t> retained_steps(const std::vector<CheckpointInfo>& checkpoints,
                                                    const RetentionPolicy& rule);

// Removes the checkpoints that the rule does not retain, and leftovers of interrupted saves:
// partial folders of other launches, and of this one for steps up to the newest checkpoint.
// REQUIRES: `launch` holds the run folder, and none of its ranks writes such a step.
[[nodiscard]] Result<void> prune_checkpoints(const std::filesystem::path& run_dir,
                                             const RetentionPolicy& rule,
                                             const std::string& launch);
// The same for a given set of retained steps. `done`: the last step that this launch has saved or
// resumed from; required if the folder has checkpoints of later steps by other launches, which its
// next saves will precede. Also retains a checkpoint of a later step with an unreadable manifest.
[[nodiscard]] Result<void> prune_to(const std::filesystem::path& run_dir,
                                    const std::set<std::int64_t>& kept,
                                    const std::string& launch,
                                    std::optional<std::int64_t> done = {});

[[nodiscard]] Result<Manifest> read_manifest(const std::filesystem::path& folder);

// Reads every byte and compares sizes and hashes. kCorrupt names the first file that differs, is
// missing or is unexpected. `watch` receives the progress in bytes; nullptr: not reported.
[[nodiscard]] Result<void> verify_checkpoint(const std::filesystem::path& folder,
                                             WorkObserver* watch = nullptr);
// The same without the optimizer's files, for readers of parameters only.
[[nodiscard]] Result<void> verify_parameters(const std::filesystem::path& folder,
                                             WorkObserver* watch = nullptr);

// The available weights, without their values.
struct WeightsOutline {
  // Parameters, by name without the prefix "transformer.".
  std::map<std::string, std::vector<std::int64_t>> tensors;
  Json config;         // the folder's config.json; null if there is none
  std::string source;  // that file, or else the weights themselves
};

// A tensor in a file.
struct StoredTensor {
  TensorOutline outline;
  std::filesystem::path file;
  std::string hash;           // of its values, from the manifest; empty in third-party files
  bool of_optimizer = false;  // optimizer state, in a checkpoint of ours
};

// Reads tensors by name from a checkpoint, or from any folder or file of safetensors in Hugging
// Face's layout ("transformer." prefixes accepted; a folder needs model.safetensors,
// model.safetensors.index.json or a single *.safetensors). Opening checks a checkpoint's files
// against the manifest's sizes; reading checks tensors against their hashes.
class CheckpointReader {
 public:
  // `work` counts the bytes read, and must then outlive the reader.
  [[nodiscard]] static Result<CheckpointReader> open(const std::filesystem::path& path,
                                                     ProgressCounter* work = nullptr);
  // The same for a run folder's part of a checkpoint: files that are only on other machines, and
  // their tensors, are left out.
  [[nodiscard]] static Result<CheckpointReader> open_part(const std::filesystem::path& path,
                                                          ProgressCounter* work = nullptr);
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;
  ~CheckpointReader();

  // nullptr if the folder is not one of our checkpoints.
  [[nodiscard]] const Manifest* manifest() const;
  [[nodiscard]] bool has(const std::string& name) const;
  // The tensor's name in the files; nullopt if they do not contain it.
  [[nodiscard]] std::optional<std::string> stored_name(const std::string& name) const;
  // All tensors: file by file, each in the order of its bytes.
  [[nodiscard]] std::vector<StoredTensor> tensors() const;
  // kCorrupt for a config.json that cannot be read, is not a JSON object or is larger than 1 MiB.
  [[nodiscard]] Result<WeightsOutline> outline() const;
  // Copies a tensor as fp32. kCorrupt if it is absent, has another shape or is damaged. REQUIRES:
  // values.size() is the product of `shape`. Safe to call from several threads.
  [[nodiscard]] Result<void> read(const std::string& name,
                                  const std::vector<std::int64_t>& shape,
                                  std::span<float> values) const;
  // Reads values of a stored tensor from number `first` on as fp32, until `values` is full; does
  // not check a hash. REQUIRES: `stored_name` is one of tensors(), with that many values.
  [[nodiscard]] Result<void> read_part(const std::string& stored_name,
                                       std::uint64_t first,
                                       std::span<float> values) const;

 private:
  struct Impl;
  explicit CheckpointReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley

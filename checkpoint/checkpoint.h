// Checkpoints: a folder that exists whole or not at all. Format: docs/formats/checkpoint.md.
//
//   checkpoints/step-000100/
//     manifest.json                       written last; names every file with size and hash
//     config.json                         the model, as Hugging Face reads it (gpt2)
//     model.safetensors.index.json        which file holds which parameter
//     model-00001-of-00003.safetensors    parameters, one file a rank
//     optimizer-00001-of-00003.safetensors  "exp_avg/<name>", "exp_avg_sq/<name>" or
//     "momentum/<name>"; "residual.H/<name>" (checkpoint/residual_name.h)
//
// Each rank writes its own files into `.step-000100.LAUNCH.partial/`; when all have reported, the
// launcher commits: manifest, sync, rename. Keyed by parameter name, never by rank, so any later
// plan reads what it needs.
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
#include "checkpoint/gradient_scale.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/work_watch.h"

namespace motley {

// What of a run's data tells whether another run trains on the same.
struct DataMark {
  std::string kind;         // text | tokens | synthetic
  std::uint64_t bytes = 0;  // of all tokens
  std::string hash;         // of their number and of sampled blocks: docs/formats/data.md
  double holdout = 0;

  friend bool operator==(const DataMark&, const DataMark&) = default;
};

// What of a plan decides how sums are rounded.
struct PlanMark {
  int micro_batch = 0;              // samples
  std::vector<std::string> codecs;  // of each boundary between chunks
  std::string gradient_codec;       // of sums over replicas
  std::vector<int> replicas;        // [ChunkId]: how many hold the chunk

  friend bool operator==(const PlanMark&, const PlanMark&) = default;
};

// In the place of an optimizer's name, in means of checkpoints, which earlier versions wrote: they
// hold no state of one.
inline constexpr const char* kNoOptimizer = "none";

// What a run needs to go on exactly where it was.
struct CheckpointState {
  std::int64_t step = 0;      // steps done
  std::uint64_t samples = 0;  // samples used so far: the position in the data
  std::uint64_t tokens = 0;
  std::int64_t optimizer_updates = 0;  // steps that were not skipped
  std::int64_t seed = 0;
  std::string model_hash;
  std::string model_family;
  std::string plan_hash;  // of the plan that wrote it; informative
  std::string optimizer;  // adamw | sgd; kNoOptimizer
  // Not in checkpoints of versions that did not know them.
  std::optional<DataMark> data = {};
  std::optional<PlanMark> plan = {};
  std::optional<GradientScale> gradient_scale = {};  // of runs in fp16
};

// One rank's contribution.
struct Shard {
  int rank = 0;
  WrittenFile model;
  WrittenFile optimizer;
};

[[nodiscard]] Json shard_to_json(const Shard& shard);
[[nodiscard]] Result<Shard> shard_from_json(const Json& json, const std::string& source);

struct Manifest {
  CheckpointState state;
  std::vector<WrittenFile> files;  // every file but the manifest itself; JSON files have no tensors
  std::string parameter_hash;      // over (name, content) of all parameters, sorted by name:
                                   // equal parameters, equal hash, however they were sharded
  Json config;                     // the run's resolved configuration (config_to_json)
};

[[nodiscard]] std::filesystem::path checkpoint_folder(const std::filesystem::path& run_dir,
                                                      std::int64_t step);

// Where one launch writes the checkpoint of one step until it is whole.
struct SavePlace {
  std::filesystem::path run_dir;
  std::string launch;  // launch_text; "" only where nobody else can write
  std::int64_t step = 0;
};

[[nodiscard]] std::filesystem::path partial_folder(const SavePlace& place);

// Removes the partial folder, when there is one. REQUIRES: no rank writes into it any more.
[[nodiscard]] Result<void> discard_partial(const SavePlace& place);

// Writes one rank's files into the partial folder, made when absent. moments: named
// "<moment>/<parameter>". Both lists may be empty. Nothing of it counts until commit_checkpoint.
// kDiverged when a parameter is not finite: nothing is written then. kCorrupt when it cannot be
// written whole, because the disk is full, say. `work` counts the bytes as they reach the disk;
// nullptr: nobody does.
[[nodiscard]] Result<Shard> write_shard(const SavePlace& place,
                                        int rank,
                                        int rank_count,
                                        const std::vector<TensorView>& parameters,
                                        const std::vector<TensorView>& moments,
                                        WorkCounter* work = nullptr);

// Shards that lie in folders of other machines: what their ranks report of them is taken as it is.
struct ShardsElsewhere {
  std::set<int> ranks;
  std::uint64_t parameter_bytes = 0;  // of all ranks, elsewhere or not
};

// Called once, by the launcher, with every rank's shard. Checks that each file is there with its
// size and tensors and that no parameter lies in two, writes index, config.json (hf_config; none
// when null) and manifest, syncs, renames. A committed checkpoint of the same step is replaced.
// After a crash at any point the step's old or new checkpoint is listed, and whole.
[[nodiscard]] Result<std::filesystem::path> commit_checkpoint(
    const std::filesystem::path& run_dir,
    const std::string& launch,
    const CheckpointState& state,
    const std::vector<Shard>& shards,
    const Json& config,
    const Json& hf_config,
    const ShardsElsewhere& elsewhere = {});

// kCorrupt, with the remedy, when folders of the run have checkpoints' names and do not count, or
// cannot be looked into: what is there must not be taken for nothing.
[[nodiscard]] Result<void> require_all_count(const std::filesystem::path& run_dir);

struct CheckpointInfo {
  std::int64_t step = 0;
  std::filesystem::path folder;
};

// Committed checkpoints, oldest first. A folder without a manifest is not one.
[[nodiscard]] std::vector<CheckpointInfo> list_checkpoints(const std::filesystem::path& run_dir);

// Which checkpoints stay.
struct KeepRule {
  int newest = 0;                      // so many; 0 = all
  std::int64_t every = 0;              // and those of steps that are multiples of it; 0 = none
  std::set<std::int64_t> always = {};  // and those of these steps
};

// Those that the rule does not keep, oldest first. REQUIRES: `checkpoints` is a list_checkpoints.
[[nodiscard]] std::vector<CheckpointInfo> dropped_checkpoints(
    const std::vector<CheckpointInfo>& checkpoints, const KeepRule& rule);

// The steps that stay.
[[nodiscard]] std::set<std::int64_t> kept_steps(const std::vector<CheckpointInfo>& checkpoints,
                                                const KeepRule& rule);

// Removes those that do not, and what interrupted saves have left: partial folders of other
// launches, and of this one for steps up to the newest checkpoint. REQUIRES: the run folder is
// `launch`'s, and none of its ranks writes such a step.
[[nodiscard]] Result<void> prune_checkpoints(const std::filesystem::path& run_dir,
                                             const KeepRule& rule,
                                             const std::string& launch);
// The same where others have decided which steps stay. `done`: the last step that this launch has
// saved or gone on from, where later ones stay that are not its own: its next saves come before
// them. Nor is a checkpoint of a later step removed of which the folder cannot tell what belongs to
// it.
[[nodiscard]] Result<void> prune_to(const std::filesystem::path& run_dir,
                                    const std::set<std::int64_t>& kept,
                                    const std::string& launch,
                                    std::optional<std::int64_t> done = {});

[[nodiscard]] Result<Manifest> read_manifest(const std::filesystem::path& folder);

// Reads every byte and compares sizes and hashes. kCorrupt names the first file that differs, is
// missing, or does not belong there. `watch` is told of the bytes; nullptr: nobody is.
[[nodiscard]] Result<void> verify_checkpoint(const std::filesystem::path& folder,
                                             WorkWatch* watch = nullptr);
// The same of all files but the optimizer's, for who reads no other values than the parameters'.
[[nodiscard]] Result<void> verify_parameters(const std::filesystem::path& folder,
                                             WorkWatch* watch = nullptr);

// What there is of weights, without their values.
struct WeightsOutline {
  // Parameters, without the prefix "transformer.".
  std::map<std::string, std::vector<std::int64_t>> tensors;
  Json config;         // the config.json of their folder; null where there is none
  std::string source;  // that file, or where there is none the weights themselves
};

// A tensor as it lies in a file.
struct StoredTensor {
  TensorOutline outline;
  std::filesystem::path file;
  std::string hash;           // of its values, by the manifest; empty in a foreign file
  bool of_optimizer = false;  // a part of the optimizer's state, in a checkpoint of ours
};

// Reads tensors by name from a checkpoint, or from any folder or file of safetensors that Hugging
// Face wrote ("transformer." prefixes accepted; a folder needs model.safetensors,
// model.safetensors.index.json or a single *.safetensors). Files of a checkpoint are checked
// against the manifest's sizes on open; tensors against their hashes on read.
class CheckpointReader {
 public:
  // `work` counts the bytes that are read, and must then outlive the reader.
  [[nodiscard]] static Result<CheckpointReader> open(const std::filesystem::path& path,
                                                     WorkCounter* work = nullptr);
  // The same of a checkpoint of which a run folder has a part: its files that other machines have
  // and that are not here are left out, and what they hold with them.
  [[nodiscard]] static Result<CheckpointReader> open_part(const std::filesystem::path& path,
                                                          WorkCounter* work = nullptr);
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;
  ~CheckpointReader();

  // nullptr when the folder is not one of our checkpoints.
  [[nodiscard]] const Manifest* manifest() const;
  [[nodiscard]] bool has(const std::string& name) const;
  // The name under which the files hold it; nothing when they do not.
  [[nodiscard]] std::optional<std::string> stored_name(const std::string& name) const;
  // All of them: file after file, each in the order of its bytes.
  [[nodiscard]] std::vector<StoredTensor> tensors() const;
  // kCorrupt for a config.json that cannot be read, is no JSON object or larger than 1 MiB.
  [[nodiscard]] Result<WeightsOutline> outline() const;
  // Copies a tensor as fp32. kCorrupt when it is absent, has another shape or is damaged.
  // REQUIRES: values.size() is the product of `shape`. Safe to call from several threads.
  [[nodiscard]] Result<void> read(const std::string& name,
                                  const std::vector<std::int64_t>& shape,
                                  std::span<float> values) const;
  // Values of a stored tensor from number `first` on, as many as there is room for, as fp32; they
  // are not compared with a hash. REQUIRES: `stored_name` is one of tensors(), and has them.
  [[nodiscard]] Result<void> read_part(const std::string& stored_name,
                                       std::uint64_t first,
                                       std::span<float> values) const;

 private:
  struct Impl;
  explicit CheckpointReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley

#include "cluster/run/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "compression/codec_chain.h"
#include "run_config/config_changes.h"
#include "training/optimizer/rate_change.h"

namespace motley {
namespace {

constexpr const char* kAllow = "or add --allow-changes to continue with it";

// The keys that data.changed = "accept" covers.
bool is_of_the_data(const ConfigChange& change) {
  return change.key == "train.seed" || change.key.starts_with("data.");
}

std::set<std::string> distinct(const std::vector<std::string>& codecs) {
  return {codecs.begin(), codecs.end()};
}

// The number of replicas of each chunk that has several.
std::vector<int> shared(const PlanFingerprint& plan) {
  std::vector<int> counts;
  for (const int count : plan.replicas) {
    if (count > 1) counts.push_back(count);
  }
  return counts;
}

std::string words(const std::vector<int>& replicas) {
  return replicas.empty() ? "no replicas"
                          : fmt::format("{} replicas", fmt::join(replicas, " and "));
}

}  // namespace

Result<void> check_resume(const CheckpointState& saved,
                          const std::filesystem::path& folder,
                          const Config& config,
                          const ModelSpec& model) {
  // --allow-changes cannot permit these: the checkpoint cannot be resumed.
  if (saved.model_hash != model.hash()) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the checkpoint {} is of another model", folder.string()),
                 "its layers or sizes differ from those of [model] in the configuration",
                 "use the configuration of that run (config.toml in its folder), or another --run"};
  }
  if (saved.optimizer == kNoOptimizer) {
    return Error{
        ErrorCode::kConfig, fmt::format("the checkpoint {} cannot be resumed", folder.string()),
        "it is a mean of others, without optimizer state",
        fmt::format("use it as the initial weights of another run: --set model.init_from={}",
                    folder.string())};
  }
  if (saved.optimizer != config.train.optimizer) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the checkpoint {} has the state of optimizer {}", folder.string(),
                             saved.optimizer),
                 fmt::format("the configuration asks for {}", config.train.optimizer),
                 fmt::format("set train.optimizer = \"{}\"", saved.optimizer)};
  }
  if (saved.step >= config.train.steps) {
    return Error{
        ErrorCode::kConfig,
        fmt::format("the run has already done {} of {} steps", saved.step, config.train.steps), "",
        longer_run_remedy(config.train, saved.step)};
  }
  return {};
}

Config with_choices_of(const Config& before, Config config) {
  const int micro_batch = before.train.micro_batch;
  if (config.train.micro_batch == 0 && micro_batch > 0 &&
      config.train.global_batch % micro_batch == 0) {
    config.train.micro_batch = micro_batch;
  }
  if (config.run.threads == 0) config.run.threads = before.run.threads;
  return config;
}

std::vector<std::string> changes_of(const Config& before, const Config& config) {
  std::vector<ConfigChange> changes = result_changes(before, config);
  if (config.data.changed == "accept") std::erase_if(changes, is_of_the_data);
  // The micro-batch was left open and the run's own is no longer possible: another reported change
  // causes this one.
  std::erase_if(changes, [&](const ConfigChange& change) {
    return change.key == "train.micro_batch" && config.train.micro_batch == 0;
  });
  std::vector<std::string> words;
  for (const ConfigChange& change : changes) {
    words.push_back(fmt::format("{} {} -> {}", change.key, change.from, change.to));
  }
  return words;
}

Result<void> refuse_changes(const std::vector<std::string>& changes, const std::string& hint) {
  if (changes.empty()) return {};
  return Error{
      ErrorCode::kConfig,
      fmt::format("the run was started with other settings: {}", fmt::join(changes, ", ")),
      "its results would differ from those of an uninterrupted run",
      fmt::format("resume with the configuration of the run (config.toml in its folder), {}{}",
                  kAllow, hint.empty() ? "" : "\n" + hint)};
}

Result<void> check_same_data(const DataFingerprint& saved,
                             const DataIdentity& found,
                             const DataConfig& data) {
  if (data.changed == "accept") return {};
  if (saved.bytes == found.bytes && saved.hash == found.hash) return {};
  return Error{
      ErrorCode::kData,
      fmt::format("the data differs from the run's, {}", data.path.empty() ? data.kind : data.path),
      saved.bytes == found.bytes
          ? fmt::format("it has the same {} bytes, with other content", saved.bytes)
          : fmt::format("it has {} bytes; it had {}", found.bytes, saved.bytes),
      fmt::format("restore the data of the run, {}", kAllow)};
}

DataFingerprint data_fingerprint(const DataIdentity& identity, const DataConfig& data) {
  return {data.kind, identity.bytes, identity.hash, data.holdout};
}

PlanFingerprint plan_fingerprint(const Plan& plan) {
  PlanFingerprint fingerprint{.micro_batch = plan.micro_batch,
                              .gradient_codec = plan.gradient_codec};
  for (const ChunkPlan& chunk : plan.chunks) {
    fingerprint.replicas.push_back(static_cast<int>(chunk.replicas.size()));
    fingerprint.codecs.push_back(chunk.codec);
  }
  fingerprint.codecs.pop_back();  // there is no boundary after the last chunk
  return fingerprint;
}

PlanOptions options_like(const PlanFingerprint& saved, const Config& config, PlanOptions options) {
  if (config.compression.activations == "auto" && !saved.codecs.empty()) {
    const std::set<std::string> codecs = distinct(saved.codecs);
    options.codecs.assign(codecs.begin(), codecs.end());
    for (CoarserCodecs& coarser : options.coarser) coarser.codecs.clear();
  }
  const bool has_replicas = !shared(saved).empty();
  const bool has_codec = !removed_codec(saved.gradient_codec).has_value();
  if (config.compression.gradients == "auto" && has_replicas && has_codec) {
    options.gradient_codecs = {saved.gradient_codec};
    for (CoarserCodecs& coarser : options.coarser) coarser.gradient_codecs.clear();
  }
  options.replicas = options.replicas && has_replicas;
  return options;
}

Cluster with_threads_of(const Plan& plan, Cluster cluster) {
  for (Machine& machine : cluster.machines) {
    const auto rank = std::ranges::find(plan.ranks, machine.name, &RankPlan::machine);
    if (machine.threads == 0 && rank != plan.ranks.end()) machine.threads = rank->threads;
  }
  return cluster;
}

std::optional<std::string> plan_change(const PlanFingerprint& saved, const PlanFingerprint& now) {
  std::vector<std::string> changes;
  if (saved.micro_batch != now.micro_batch) {
    changes.push_back(fmt::format("micro-batches of {} samples instead of {}", now.micro_batch,
                                  saved.micro_batch));
  }
  const bool has_boundaries = !saved.codecs.empty() && !now.codecs.empty();
  if (has_boundaries && distinct(saved.codecs) != distinct(now.codecs)) {
    changes.push_back(fmt::format("activations through {} instead of {}",
                                  fmt::join(distinct(now.codecs), " and "),
                                  fmt::join(distinct(saved.codecs), " and ")));
  }
  if (shared(saved) != shared(now)) {
    changes.push_back(fmt::format("{} instead of {}", words(shared(now)), words(shared(saved))));
  } else if (!shared(now).empty() && saved.gradient_codec != now.gradient_codec) {
    changes.push_back(fmt::format("gradient all-reduces through {} instead of {}",
                                  now.gradient_codec, saved.gradient_codec));
  }
  if (changes.empty()) return {};
  return fmt::format("{}", fmt::join(changes, ", "));
}

bool rounds_alike(const Plan& a, const Plan& b) {
  // [layer][machine][replica]: micro-batches
  const auto shares_of = [](const Plan& plan) {
    std::vector<std::vector<std::vector<int>>> shares;
    for (const ChunkPlan& chunk : plan.chunks) {
      std::vector<std::string> machines;
      std::vector<std::vector<int>> by_machine;
      for (const Replica& replica : chunk.replicas) {
        const std::string& machine = plan.ranks[replica.rank.index()].machine;
        const auto at = std::ranges::find(machines, machine) - machines.begin();
        if (at == std::ssize(machines)) {
          machines.push_back(machine);
          by_machine.emplace_back();
        }
        by_machine[static_cast<std::size_t>(at)].push_back(replica.micro_batches);
      }
      shares.insert(shares.end(), static_cast<std::size_t>(chunk.layer_count), by_machine);
    }
    return shares;
  };
  return shares_of(a) == shares_of(b);
}

}  // namespace motley

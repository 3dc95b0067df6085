#include "cluster/planning/plan_rounding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "compression/codec_chain.h"

namespace motley {
namespace {

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
  // Islands are replicas, and a configuration with rounds permits what they change.
  options.replicas = options.replicas && (has_replicas || options.rounds.has_value());
  // A run whose machines are lost but for one continues without.
  if (options.rounds) options.rounds->is_required = false;
  return options;
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

bool have_same_rounding(const Plan& a, const Plan& b) {
  if (a.rounds.has_value() != b.rounds.has_value()) return false;
  if (a.rounds && (a.rounds->steps != b.rounds->steps || a.rounds->codec != b.rounds->codec ||
                   a.rounds->start_steps != b.rounds->start_steps ||
                   a.rounds->overlap_steps != b.rounds->overlap_steps)) {
    return false;
  }
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

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/hex.h"
#include "base/secret.h"
#include "checkpoint/fencing_token.h"
#include "plan/device_kinds.h"
#include "plan/group_limits.h"
#include "protocol/message_fields.h"
#include "protocol/protocol.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

Error job_error(const std::string& source, const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("malformed job, {}", source), cause,
          "use the same version of Motley on every machine"};
}

// A member that must be an integer in [least, most].
template <class Int>
Result<Int> get_integer(
    const Json& json, const char* key, Int least, Int most, const std::string& source) {
  MOTLEY_ASSIGN(const std::int64_t value, json_get<std::int64_t>(json, key, source));
  if (value < std::int64_t{least} || value > std::int64_t{most}) {
    return job_error(source,
                     fmt::format("'{}' is {}, not between {} and {}", key, value, least, most));
  }
  return static_cast<Int>(value);
}

// Never quoted in an error.
Result<std::string> get_secret(const Json& json, const std::string& source) {
  MOTLEY_ASSIGN(const std::string text, json_get<std::string>(json, "secret", source));
  const auto bytes = from_hex(text);
  if (!bytes || (!bytes->empty() && bytes->size() != kSecretBytes)) {
    return job_error(source, "'secret' is not a secret");
  }
  return std::string(bytes->begin(), bytes->end());
}

// The launcher has validated the values in the cluster file.
Result<std::optional<VirtualSpeed>> get_virtual_speed(const Json& json, const std::string& source) {
  if (!json.contains("virtual")) return std::optional<VirtualSpeed>();
  VirtualSpeed speed;
  MOTLEY_ASSIGN(speed.tokens_per_s, json_get<double>(json["virtual"], "tokens_per_s", source));
  MOTLEY_ASSIGN(speed.gflops, json_get<double>(json["virtual"], "gflops", source));
  if (!(speed.tokens_per_s >= 0 && speed.gflops >= 0 && speed.tokens_per_s + speed.gflops > 0)) {
    return job_error(source, "'virtual' has no speed");
  }
  return std::optional(speed);
}

Json ranks_to_json(const std::vector<Rank>& ranks) {
  Json json = Json::array();
  for (const Rank rank : ranks) json.push_back(rank.value);
  return json;
}

// Other ranks of the plan.
Result<std::vector<Rank>> get_ranks(const Json& json,
                                    const char* key,
                                    const Job& job,
                                    const std::string& source) {
  MOTLEY_ASSIGN(const std::vector<std::int64_t> numbers, counts_of(json, key, source));
  std::vector<Rank> ranks;
  for (const std::int64_t number : numbers) {
    if (number >= job.plan.rank_count() || number == job.rank.value) {
      return job_error(source, fmt::format("'{}' has rank {}", key, number));
    }
    ranks.push_back(Rank{static_cast<std::int32_t>(number)});
  }
  return ranks;
}

Result<std::optional<ReplicatorJob>> get_replicator(const Json& json,
                                                    const Job& job,
                                                    const std::string& source) {
  const auto found = json.find("keeper");
  if (found == json.end()) return std::optional<ReplicatorJob>();
  ReplicatorJob replicator;
  MOTLEY_ASSIGN(replicator.copies_to, get_ranks(*found, "copies_to", job, source));
  MOTLEY_ASSIGN(replicator.copies_from, get_ranks(*found, "copies_from", job, source));
  return std::optional(std::move(replicator));
}

// A job that only takes an inventory of a machine's folder needs none.
bool needs_launch(const Job& job) {
  return job.verb == "train" || (job.verb == "store" && !job.options.contains("look"));
}

}  // namespace

std::uint32_t epoch_of(const Job& job) {
  return job.launch.empty() ? 1 : parse_launch(job.launch).value().number;
}

Json job_to_json(const Job& job) {
  Json json = {{"protocol", kProtocolVersion}, {"verb", job.verb}};
  json["config"] = config_to_json(job.config);
  if (job.verb == "train") {
    json["plan"] = plan_to_json(job.plan);
    json["rank"] = job.rank.value;
  }
  json["lease_s"] = job.lease_s;
  json["run_dir"] = job.run_dir;
  json["store"] = job.store;
  if (job.replicator) {
    json["keeper"] = {{"copies_to", ranks_to_json(job.replicator->copies_to)},
                      {"copies_from", ranks_to_json(job.replicator->copies_from)}};
  }
  json["launch"] = job.launch;
  json["run_id"] = job.run_id;
  json["resume_from"] = job.resume_from;
  if (job.evaluations_begin_anew) json["evaluations_begin_anew"] = true;
  json["stop_after"] = job.stop_after;
  json["bind_address"] = job.bind_address;
  json["interface"] = job.interface;
  json["secret"] = to_hex(job.secret);
  json["local_shortcut"] = job.local_shortcut;
  json["device"] = job.device;
  json["threads"] = job.threads;
  json["cpu_share"] = job.cpu_share;
  if (job.virtual_speed) {
    json["virtual"] = {{"tokens_per_s", job.virtual_speed->tokens_per_s},
                       {"gflops", job.virtual_speed->gflops}};
  }
  json["options"] = job.options;
  return json;
}

Result<Job> job_from_json(const Json& json, const std::string& source) {
  constexpr double kLeaseMax_s = 86'400;
  constexpr std::int64_t kStepsMax = std::numeric_limits<std::int64_t>::max();
  MOTLEY_ASSIGN(const std::int64_t protocol, json_get<std::int64_t>(json, "protocol", source));
  if (protocol != kProtocolVersion) {
    return job_error(source, fmt::format("it has protocol version {}; this program has {}",
                                         protocol, kProtocolVersion));
  }
  Job job;
  MOTLEY_ASSIGN(job.verb, json_get<std::string>(json, "verb", source));
  constexpr std::array kVerbs = {"train",  "profile", "probe",    "allreduce", "data",
                                 "doctor", "devices", "generate", "store"};
  if (std::ranges::find(kVerbs, job.verb) == kVerbs.end()) {
    return job_error(source, fmt::format("unknown verb '{}'", excerpt(job.verb)));
  }
  if (!json.contains("config")) return job_error(source, "'config' is missing");
  MOTLEY_ASSIGN(job.config, config_from_json(json["config"], source));
  if (job.verb == "train") {
    if (!json.contains("plan")) return job_error(source, "'plan' is missing");
    MOTLEY_ASSIGN(job.plan, plan_from_json(json["plan"], source));
    MOTLEY_ASSIGN(job.rank.value,
                  get_integer<std::int32_t>(json, "rank", 0, job.plan.rank_count() - 1, source));
  }
  MOTLEY_ASSIGN(job.lease_s, json_get<double>(json, "lease_s", source));
  if (!(job.lease_s >= 0 && job.lease_s <= kLeaseMax_s)) {
    return job_error(source, fmt::format("'lease_s' is {}", job.lease_s));
  }
  MOTLEY_ASSIGN(job.run_dir, json_get<std::string>(json, "run_dir", source));
  MOTLEY_ASSIGN(job.store, json_get<std::string>(json, "store", source));
  MOTLEY_ASSIGN(job.replicator, get_replicator(json, job, source));
  MOTLEY_ASSIGN(job.launch, json_get<std::string>(json, "launch", source));
  MOTLEY_ASSIGN(job.run_id, json_get<std::string>(json, "run_id", source));
  MOTLEY_ASSIGN(job.resume_from, json_get<std::string>(json, "resume_from", source));
  if (json.contains("evaluations_begin_anew")) {
    MOTLEY_ASSIGN(job.evaluations_begin_anew,
                  json_get<bool>(json, "evaluations_begin_anew", source));
  }
  MOTLEY_ASSIGN(job.stop_after,
                get_integer<std::int64_t>(json, "stop_after", 0, kStepsMax, source));
  MOTLEY_ASSIGN(job.bind_address, json_get<std::string>(json, "bind_address", source));
  MOTLEY_ASSIGN(job.interface, json_get<std::string>(json, "interface", source));
  MOTLEY_ASSIGN(job.secret, get_secret(json, source));
  MOTLEY_ASSIGN(job.local_shortcut, json_get<bool>(json, "local_shortcut", source));
  MOTLEY_ASSIGN(job.device, json_get<std::string>(json, "device", source));
  MOTLEY_ASSIGN(job.threads, get_integer<int>(json, "threads", 0, kThreadsMax, source));
  MOTLEY_ASSIGN(job.cpu_share, json_get<double>(json, "cpu_share", source));
  if (!(job.cpu_share >= 0 && job.cpu_share <= kCpuShareMax)) {
    return job_error(source, fmt::format("'cpu_share' is {}", job.cpu_share));
  }
  MOTLEY_ASSIGN(job.virtual_speed, get_virtual_speed(json, source));
  const bool uses_speed = job.verb == "train" || job.verb == "profile";
  if (uses_speed && capabilities_of(job.device).is_measured == job.virtual_speed.has_value()) {
    return job_error(source, fmt::format("device '{}' and 'virtual' contradict each other",
                                         excerpt(job.device)));
  }
  if (!json.contains("options") || !json["options"].is_object()) {
    return job_error(source, "'options' is missing or not an object");
  }
  job.options = json["options"];
  if (needs_launch(job) || !job.launch.empty()) {
    const Result<LaunchId> launch = parse_launch(job.launch);
    if (!launch) return job_error(source, launch.error().what);
  }
  return job;
}

}  // namespace motley

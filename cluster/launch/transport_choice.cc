#include "cluster/launch/transport_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/secret.h"

namespace motley {
namespace {

// Machines without an address are processes on this machine.
bool through_network(const Cluster& cluster, const std::set<std::string>& machines) {
  for (const std::string& name : machines) {
    if (!cluster.find(name)->address.empty()) return true;
  }
  return false;
}

Result<void> check_addresses(const Cluster& cluster, const std::set<std::string>& machines) {
  if (!through_network(cluster, machines)) return {};
  for (const std::string& name : machines) {
    if (!cluster.find(name)->address.empty()) continue;
    return Error{ErrorCode::kConfig, fmt::format("machine {} has no address", name),
                 "the other machines are reached through the network",
                 "add address = \"…\" to its entry in the cluster file"};
  }
  return {};
}

// The values of comm.transport and comm.encrypt may come from a command line, unchecked.
Result<void> check_word(const char* key,
                        const std::string& word,
                        const std::set<std::string>& allowed) {
  if (allowed.contains(word)) return {};
  return with_key(
      {ErrorCode::kConfig, fmt::format("{} is '{}'", key, excerpt(word)),
       fmt::format("the choices are {}", fmt::join(allowed, ", ")), "choose one of these"},
      key);
}

Error exposed(const char* key, const std::string& what) {
  return with_key(
      {ErrorCode::kConfig,
       fmt::format("{}, and the network between the machines is not declared trusted", what),
       "any host that reaches the machines' ports could read or change their messages",
       "leave comm.transport and comm.encrypt on auto, or, if only trusted people can reach this "
       "network, set trusted = true under [network] in the cluster file"},
      key);
}

}  // namespace

Result<TransportChoice> choose_transport(const Cluster& cluster,
                                         const std::set<std::string>& machines,
                                         const CommConfig& comm) {
  MOTLEY_TRY(check_word("comm.transport", comm.transport, {"auto", "ucx", "gloo", "tcp"}));
  MOTLEY_TRY(check_word("comm.encrypt", comm.encrypt, {"auto", "always", "never"}));
  MOTLEY_TRY(check_addresses(cluster, machines));
  TransportChoice choice;
  choice.is_local = machines.size() == 1 || !through_network(cluster, machines);
  const bool is_open = !choice.is_local && !cluster.trusted;
  const std::string where = choice.is_local   ? "all ranks are on this machine"
                            : cluster.trusted ? "the network is declared trusted"
                                              : "the network is not declared trusted";
  if (comm.encrypt == "never" && is_open) return exposed("comm.encrypt", "comm.encrypt is never");
  if (comm.transport == "ucx" || comm.transport == "gloo") {
    if (is_open)
      return exposed("comm.transport",
                     fmt::format("{} neither encrypts nor authenticates", comm.transport));
    if (comm.encrypt == "always") {
      return with_key(
          {ErrorCode::kConfig,
           fmt::format("comm.transport is {} and comm.encrypt is always", comm.transport),
           "only the transport tcp encrypts", "set comm.transport to auto or tcp"},
          "comm.transport");
    }
    choice.kind = comm.transport;
    choice.reason = fmt::format("transport {}, unencrypted: {}", comm.transport, where);
    return choice;
  }
  const bool is_trusted = !choice.is_local && cluster.trusted;
  choice.kind = "tcp";
  if (comm.encrypt == "always") {
    choice.has_secret = true;
    choice.local_shortcut = false;
    choice.reason = "transport tcp with TLS 1.3: comm.encrypt is always";
  } else if (comm.encrypt == "never" || is_trusted) {
    choice.reason = fmt::format("transport tcp, unencrypted: {}", where);
  } else {
    choice.has_secret = true;
    choice.reason =
        fmt::format("transport tcp{}: {}",
                    choice.is_local ? ", unencrypted" : " with TLS 1.3 between machines", where);
  }
  return choice;
}

Result<void> apply_transport(const TransportChoice& choice, std::vector<WorkerSpec>& workers) {
  std::string secret;
  if (choice.has_secret) {
    MOTLEY_ASSIGN(secret, make_secret());
  }
  for (WorkerSpec& worker : workers) {
    worker.job.config.comm.transport = choice.kind;
    worker.job.secret = secret;
    worker.job.local_shortcut = choice.local_shortcut;
  }
  wipe(secret);
  return {};
}

}  // namespace motley

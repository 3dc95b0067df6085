// The kinds that tests are repeated over: the transports of the build, "inproc", and "tls", which
// is tcp with a secret.
#pragma once

#include <string>
#include <vector>

#include "base/secret.h"
#include "comm/transport.h"

namespace motley {

// Options for the rank of a group that is connected by the kind.
inline TransportOptions options_for(const std::string& kind, Rank rank, int rank_count) {
  TransportOptions options;
  options.kind = kind == "tls" ? "tcp" : kind;
  if (kind == "tls") options.secret = std::string(kSecretBytes, 's');
  options.rank = rank;
  options.rank_count = rank_count;
  return options;
}

// All that go through the network.
inline std::vector<std::string> network_transport_kinds() {
  std::vector<std::string> kinds = transport_kinds();
  kinds.emplace_back("tls");
  return kinds;
}

inline std::vector<std::string> all_transport_kinds() {
  std::vector<std::string> kinds = network_transport_kinds();
  kinds.insert(kinds.begin(), "inproc");
  return kinds;
}

}  // namespace motley

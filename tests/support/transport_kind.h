// The transports that tests are parameterised over: those of the build, "inproc", and
//   tcp     as between machines of a trusted network
//   tls     tcp with a secret, everything encrypted
//   local   tcp with a secret, which ranks of one machine prove to each other; then shared memory
//   mixed   auto, with ranks 0 and 1 on one machine and each other on one of its own
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/secret.h"
#include "comm/make_transport.h"
#include "comm/transport/transport.h"

namespace motley {

// Options of one rank of a group with this kind of transport.
inline TransportOptions options_for(const std::string& kind, Rank rank, int rank_count) {
  TransportOptions options;
  options.patience_s = 4;
  options.kind = kind;
  options.rank = rank;
  options.rank_count = rank_count;
  if (kind == "tls" || kind == "local") {
    options.kind = "tcp";
    options.secret = std::string(kSecretBytes, 's');
  }
  if (kind == "tcp" || kind == "tls") options.local_shortcut = false;
  if (kind == "mixed") {
    options.kind = "auto";
    options.bind_address = "127.0.0." + std::to_string(std::max(1, rank.value));
    options.interface = "lo";
  }
  return options;
}

// All kinds that use the network.
inline std::vector<std::string> network_transport_kinds() {
  std::vector<std::string> kinds = transport_kinds();
  for (const char* kind : {"tls", "local", "mixed"}) kinds.emplace_back(kind);
  return kinds;
}

inline std::vector<std::string> all_transport_kinds() {
  std::vector<std::string> kinds = network_transport_kinds();
  kinds.insert(kinds.begin(), "inproc");
  return kinds;
}

}  // namespace motley

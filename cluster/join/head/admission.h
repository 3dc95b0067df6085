// Admission: which machines a ticket admits. The ticket has a number of places; a machine takes one
// when it proves the ticket's secret for the first time, and from then on is known by its key, so
// it may come back after a lost connection without a place or a proof. The secret is erased with
// the last place. Pure: time and messages are passed in.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/join/join_identity.h"

namespace motley {

// Of a machine's name and of the paths in its hello.
inline constexpr std::size_t kJoinNameBytesMax = 63;

class Admission {
 public:
  // `taken_names`: those of the cluster's other machines.
  Admission(std::string secret,
            int places,
            double expires_unix_s,
            std::set<std::string> taken_names);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // The machine's name in the cluster: `wanted`, made unique, or the one that it got before. A new
  // machine takes `takes` places.
  // kUnauthorised, in words for the machine, if it may not join. REQUIRES: TLS has proved that the
  // other end has the key of context.machine.
  [[nodiscard]] Result<std::string> admit(const ProofContext& context,
                                          std::string_view proof,
                                          const std::string& wanted,
                                          double unix_now_s,
                                          int takes = 1);

  [[nodiscard]] int places_left() const { return places_ - taken_; }

 private:
  [[nodiscard]] std::string unique_name(const std::string& wanted) const;

  std::string secret_;  // empty once the places are taken
  int places_;
  int taken_ = 0;
  double expires_unix_s_;
  std::set<std::string> taken_names_;
  std::map<std::string, std::string> names_;  // by fingerprint
};

// The host name or --name as a machine's name in a cluster: its unusable characters are replaced.
[[nodiscard]] std::string name_in_cluster(std::string_view text);

}  // namespace motley

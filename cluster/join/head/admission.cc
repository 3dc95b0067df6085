#include "cluster/join/head/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/secret.h"

namespace motley {
namespace {

Error refused(const std::string& cause) {
  return {ErrorCode::kUnauthorised, "the head refused this machine", cause,
          "ask for a new ticket: motley launch --invite prints one at each start"};
}

}  // namespace

Admission::Admission(std::string secret,
                     int places,
                     double expires_unix_s,
                     std::set<std::string> taken_names)
    : secret_(std::move(secret)),
      places_(places),
      expires_unix_s_(expires_unix_s),
      taken_names_(std::move(taken_names)) {}

Admission::~Admission() {
  wipe(secret_);
}

Result<std::string> Admission::admit(const ProofContext& context,
                                     std::string_view proof,
                                     const std::string& wanted,
                                     double unix_now_s,
                                     int takes) {
  const auto known = names_.find(context.machine);
  if (known != names_.end()) return known->second;
  if (places_left() <= 0) {
    return refused(fmt::format("the ticket was for {} {}, which {} joined", places_,
                               places_ == 1 ? "machine" : "machines",
                               places_ == 1 ? "has" : "have"));
  }
  if (!is_same_secret(proof, ticket_proof(secret_, context))) {
    return refused("the secret of the ticket is not the one of this run");
  }
  if (unix_now_s >= expires_unix_s_) {
    return refused(fmt::format("the ticket expired {:.0f} s ago", unix_now_s - expires_unix_s_));
  }
  if (takes > places_left()) {
    return refused(
        fmt::format("it has {} processes, and {} of all are left for it", takes, places_left()));
  }
  const std::string name = unique_name(name_in_cluster(wanted));
  taken_ += takes;
  names_.emplace(context.machine, name);
  if (places_left() == 0) wipe(secret_);
  return name;
}

std::string Admission::unique_name(const std::string& wanted) const {
  const auto is_taken = [&](const std::string& name) {
    return taken_names_.contains(name) ||
           std::ranges::any_of(names_, [&](const auto& known) { return known.second == name; });
  };
  std::string name = wanted;
  for (int number = 2; is_taken(name); ++number) name = fmt::format("{}-{}", wanted, number);
  return name;
}

std::string name_in_cluster(std::string_view text) {
  std::string name(text.substr(0, kJoinNameBytesMax));
  for (char& c : name) {
    const bool is_usable = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    if (!is_usable || static_cast<unsigned char>(c) > 127) c = '-';
  }
  while (!name.empty() && name.front() == '-') name.erase(0, 1);
  return name.empty() ? "machine" : name;
}

}  // namespace motley

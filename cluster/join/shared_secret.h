// What a head and its machines compute from a secret that all of them know, so that no ticket has
// to be passed on: the head's key and the secret of its ticket (docs/formats/join.md). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/join/join_identity.h"

namespace motley {

// A shorter one could be guessed: anyone who reaches the head learns its public key, which a guess
// can be compared with.
inline constexpr std::size_t kSharedSecretBytesMin = 16;

struct DerivedSecret {
  JoinIdentity head;
  std::string ticket_secret;  // kTicketSecretBytes bytes
};

// By scrypt, whose cost slows down guesses. `port`: of the head, so that two runs on one machine
// have different keys. kUsage, without a quotation, if the secret is too short.
[[nodiscard]] Result<DerivedSecret> derive_secret(std::string_view secret, std::uint16_t port);

}  // namespace motley

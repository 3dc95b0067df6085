// Ticket: what a machine needs to join a run, as one line of text:
//
//   motley1:PORT@ADDRESS[,ADDRESS…]/EXPIRY/FINGERPRINT/SECRET
//
// docs/formats/join.md describes the fields. No character of it has a meaning for a shell. A value;
// its secret must not appear in a log, an environment or the arguments of a worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace motley {

inline constexpr std::size_t kTicketSecretBytes = 16;

struct Ticket {
  std::vector<std::string> addresses;  // numeric, of the head, the likeliest first; not empty
  std::uint16_t port = 0;              // not 0
  std::int64_t expires_unix_s = 0;     // no machine joins for the first time after this
  std::string fingerprint;             // of the head's key, 64 hexadecimal digits
  std::string secret;                  // kTicketSecretBytes bytes

  friend bool operator==(const Ticket&, const Ticket&) = default;
};

// Of IPv4 or IPv6, without a zone.
[[nodiscard]] bool is_numeric_address(const std::string& text);

[[nodiscard]] std::string ticket_text(const Ticket& ticket);

// Surrounding white space is ignored. kUsage, which names the invalid part and quotes
// nothing, since it may be the secret.
[[nodiscard]] Result<Ticket> parse_ticket(std::string_view text);

}  // namespace motley

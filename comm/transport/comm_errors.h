// Errors with the same text in every transport, and the check of a received length.
#pragma once

#include <cstddef>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/buffer.h"

namespace motley {

// kPeer, kLost: "rank 2 was lost", with the transport's message as the cause.
[[nodiscard]] Error peer_lost(Rank peer, const std::string& cause);

// kPeer: the rank could not be reached while connecting.
[[nodiscard]] Error peer_unreachable(Rank peer, const std::string& cause);

// kPeer, kSilent: the expected message did not arrive within `seconds`.
[[nodiscard]] Error nothing_came(const std::string& what, double seconds);

// kUnauthorised: the rank answered and rejected the secret of this launch.
[[nodiscard]] Error peer_refused(Rank peer, const std::string& cause);

// kCorrupt: a message that is larger than its receive.
[[nodiscard]] Error message_too_long(Rank from, std::size_t capacity_bytes);

// Sets the size of the received message in `buffer`. kCorrupt if it cannot be a message: longer
// than the buffer, or shorter than a header.
[[nodiscard]] Result<Buffer> received(Rank from, Buffer buffer, std::size_t message_bytes);

}  // namespace motley

// The errors that every transport gives in the same words, and the check of a received length.
#pragma once

#include <cstddef>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/buffer.h"

namespace motley {

// kPeer, kLost: "rank 2 was lost", with the transport's own words as the cause.
[[nodiscard]] Error peer_lost(Rank peer, const std::string& cause);

// kPeer: the rank could not be reached while connecting.
[[nodiscard]] Error peer_unreachable(Rank peer, const std::string& cause);

// kPeer, kSilent: what was waited for did not come in so many seconds.
[[nodiscard]] Error nothing_came(const std::string& what, double seconds);

// kUnauthorised: the rank answered, and does not accept the secret of this launch.
[[nodiscard]] Error peer_refused(Rank peer, const std::string& cause);

// kCorrupt: a message that does not fit where it was expected.
[[nodiscard]] Error message_too_long(Rank from, std::size_t room_bytes);

// Sets what came as the payload of `buffer`. kCorrupt when it cannot be a message: longer than the
// room, or shorter than a header.
[[nodiscard]] Result<Buffer> received(Rank from, Buffer buffer, std::size_t message_bytes);

}  // namespace motley

#include "comm/transport/comm_errors.h"

#include <fmt/format.h>

#include <utility>

namespace motley {

Error peer_lost(Rank peer, const std::string& cause) {
  Error error{ErrorCode::kPeer, fmt::format("rank {} was lost", peer.value), cause,
              "see the end of that process's log; resume from the last checkpoint"};
  error.peer_state = PeerState::kLost;
  error.peer = peer.value;
  return error;
}

Error peer_unreachable(Rank peer, const std::string& cause) {
  return {ErrorCode::kPeer, fmt::format("cannot connect to rank {}", peer.value), cause,
          "check that its process runs, and that addresses, interfaces and firewalls let the two "
          "machines reach each other"};
}

Error nothing_came(const std::string& what, double seconds) {
  Error error{ErrorCode::kPeer,
              fmt::format("waiting for {}: timed out after {:.3g} s", what, seconds),
              "the other process stopped or is far behind, or the network is down",
              "check that process's log and the link to its machine"};
  error.peer_state = PeerState::kSilent;
  return error;
}

Error peer_refused(Rank peer, const std::string& cause) {
  return {ErrorCode::kUnauthorised,
          fmt::format("rank {} does not accept this rank's secret", peer.value), cause,
          "give all ranks the secret and the epoch of one launch; end leftover processes of "
          "earlier launches"};
}

Error message_too_long(Rank from, std::size_t capacity_bytes) {
  return {ErrorCode::kCorrupt, fmt::format("a message from rank {} is too long", from.value),
          fmt::format("{} bytes were expected at most", capacity_bytes),
          "start all ranks from the same plan and version"};
}

Result<Buffer> received(Rank from, Buffer buffer, std::size_t message_bytes) {
  const std::size_t capacity_bytes = buffer.message_space().size();
  if (message_bytes > capacity_bytes) return message_too_long(from, capacity_bytes);
  if (message_bytes < kFrameHeaderBytes) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("a message from rank {} is too short", from.value),
                 fmt::format("{} bytes cannot hold a header", message_bytes),
                 "start all ranks from the same version"};
  }
  buffer.set_payload_bytes(message_bytes - kFrameHeaderBytes);
  return buffer;
}

}  // namespace motley

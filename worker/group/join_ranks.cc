#include "worker/group/join_ranks.h"

#include <string>
#include <utility>
#include <vector>

#include "comm/make_transport.h"
#include "comm/transport/inproc_transport.h"
#include "protocol/link_message.h"

namespace motley {
namespace {

LinkState link_state(ConnectState state) {
  switch (state) {
    case ConnectState::kAnswers:
      return LinkState::kAnswers;
    case ConnectState::kSilent:
      return LinkState::kSilent;
    case ConnectState::kRefused:
      return LinkState::kRefused;
    case ConnectState::kNoRoute:
      break;
  }
  return LinkState::kNoRoute;
}

Json unreached_event_of(const std::vector<MissingPeer>& missing) {
  std::vector<UnreachedPeer> peers;
  for (const MissingPeer& peer : missing) {
    peers.push_back({peer.rank, peer.address, link_state(peer.state), peer.words, peer.since_s});
  }
  return unreached_event(peers);
}

Result<std::vector<std::string>> receive_addresses(LauncherChannel& launcher,
                                                   int rank_count,
                                                   Deadline deadline) {
  MOTLEY_ASSIGN(const Json message, launcher.receive(deadline, "the addresses of the ranks"));
  std::vector<std::string> addresses;
  if (message.contains("addresses") && message["addresses"].is_array()) {
    for (const Json& address : message["addresses"]) {
      if (address.is_string()) addresses.push_back(address.get<std::string>());
    }
  }
  if (static_cast<int>(addresses.size()) != rank_count) {
    return Error{ErrorCode::kInternal, "malformed list of addresses from the launcher", "", ""};
  }
  return addresses;
}

}  // namespace

Result<std::unique_ptr<Transport>> join_ranks(const Job& job,
                                              Rank self,
                                              int rank_count,
                                              LauncherChannel& launcher,
                                              double timeout_s,
                                              std::uint64_t unexpected_bytes_max) {
  if (rank_count == 1) return std::move(make_inproc_transports(1).front());
  TransportOptions options;
  options.kind = job.config.comm.transport;
  options.rank = self;
  options.rank_count = rank_count;
  options.bind_address = job.bind_address;
  options.interface = job.interface;
  options.stall_timeout = StallTimeout(timeout_s, launcher.group_progress_clock());
  options.patience_s = job.config.comm.patience_s;
  options.epoch = epoch_of(job);
  options.unexpected_bytes_max = unexpected_bytes_max;
  options.secret = job.secret;
  options.local_shortcut = job.local_shortcut;
  MOTLEY_ASSIGN(auto transport,
                make_transport(options, [&launcher](const std::vector<MissingPeer>& missing) {
                  launcher.send(unreached_event_of(missing));
                }));
  launcher.send({{"event", "address"}, {"address", transport->address()}});
  // The launcher gives up on a rank without progress after half of this time, and names it.
  const StallTimeout start = options.stall_timeout.with_s(2 * job.config.comm.start_timeout_s);
  MOTLEY_ASSIGN(const auto addresses,
                receive_addresses(launcher, options.rank_count, start.deadline()));
  MOTLEY_TRY(transport->connect(addresses, start.deadline()));
  return transport;
}

void disconnect_ranks(
    FrameLink& link, Rank self, int rank_count, std::int64_t step, const ProgressClock& group) {
  constexpr double kPart_s = 5;
  const Deadline deadline = Deadline::after_s(kPart_s, group);
  if (self.value != 0) {
    (void)link.send(Rank{0}, FrameId::vote(self, step), Buffer(0))
        .wait(deadline, "rank 0 to disconnect");
    return;
  }
  std::vector<PendingFrame> words;
  for (Rank rank{1}; rank.value < rank_count; ++rank.value) {
    words.push_back(link.recv(rank, FrameId::vote(rank, step), Buffer(0)));
  }
  for (PendingFrame& word : words) (void)word.wait(deadline);
}

}  // namespace motley

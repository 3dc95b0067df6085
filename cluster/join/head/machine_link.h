// MachineLink: the head's connection to one joined machine, and the commands and transfers on it.
// One owner thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "cluster/join/head/head_channels.h"
#include "cluster/join/head/local_socket.h"
#include "cluster/join/join_messages.h"
#include "cluster/join/poll_set.h"
#include "cluster/join/tls_link.h"

namespace motley {

class MachineLink {
 public:
  // Welcomes the machine.
  MachineLink(std::unique_ptr<TlsLink> link, const JoinWelcome& welcome);
  ~MachineLink();  // lose(), if that has not been called

  // Starts what a process of this machine asks for: `words` is a command, or "files".
  void start(OwnedFd client, std::vector<OwnedFd> streams, const JoinWords& words);

  void watch(PollSet& polled);
  // To be called after each round. The error with which the machine was lost: its silence, its
  // leave or a violation of the protocol.
  [[nodiscard]] Result<void> tend();

  // Sends the machine how the run has ended, and waits for at most a second until it is sent.
  void end(const JoinExit& run);
  // Ends all channels with this problem.
  void lose(const std::string& problem);

 private:
  void advance();
  [[nodiscard]] Result<void> take(const JoinFrame& frame);

  std::unique_ptr<TlsLink> link_;
  const double silence_s_;
  std::map<std::uint32_t, std::unique_ptr<HeadChannel>> channels_;
  std::uint32_t last_channel_ = 0;
  double pinged_at_s_ = 0;
  Result<void> state_;  // the first error
};

}  // namespace motley

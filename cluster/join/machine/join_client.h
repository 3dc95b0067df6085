// JoinClient: dials the head of a ticket, joins, serves, and dials again after a lost connection.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/process/stop_signals.h"
#include "base/result.h"
#include "cluster/join/join_identity.h"
#include "cluster/join/join_messages.h"
#include "cluster/join/machine/join_home.h"
#include "cluster/join/ticket.h"
#include "cluster/join/tls_link.h"

namespace motley {

struct JoinOptions {
  // Called before each attempt: a head that starts again may have another ticket. An error is that
  // of the attempt.
  std::function<Result<Ticket>()> ticket;
  // This machine's folders for the head with this key.
  std::function<Result<JoinHome>(const std::string& fingerprint)> home;
  std::string name;                // wanted in the cluster
  std::filesystem::path programs;  // folder of motley-stage
  double wait_s = 0;               // for a head that does not listen yet
  bool once = false;               // do not dial again after a lost connection
  // Whether another head at the address counts as one that does not listen yet: the ticket may be
  // that of an earlier start.
  bool may_be_outdated = false;
  // In the hello (JoinHello).
  int processes = 1;
  int announced = 0;
  std::function<std::string()> mark = [] { return std::string(); };
  std::function<void(const std::string& line)> say;
};

// Returns once the head has ended the session, how the run has ended; this machine's key for the
// head is then removed. After a lost connection it stays, for a start with the same ticket. Errors:
// kUnauthorised if the head refuses this machine, in its words, or is not the head of the ticket;
// kPeer if no address of the ticket answers within wait_s, or, with `once` or after the time that
// the head gave, if the connection stays lost; kInterrupted and kTerminated.
[[nodiscard]] Result<JoinExit> join_head(const JoinOptions& options);

}  // namespace motley

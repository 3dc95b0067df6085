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
  Ticket ticket;
  std::string name;                // wanted in the cluster
  std::filesystem::path programs;  // folder of motley-stage
  bool once = false;               // do not dial again after a lost connection
  std::function<void(const std::string& line)> say;
};

// Returns once the head has ended the session. Errors: kUnauthorised if the head refuses this
// machine, in its words, or is not the head of the ticket; kPeer if no address of the ticket
// answers, or, with `once` or after the time that the head gave, if the connection stays lost;
// kInterrupted and kTerminated.
[[nodiscard]] Result<void> join_head(const JoinOptions& options, const JoinHome& home);

}  // namespace motley

// JoinHead: invites machines and holds their connections for a run. Programs of this machine run
// commands on them through its socket (cluster/join/head/local_request.h), as through ssh: the head
// is to them what the master connection of ssh is to ssh. It has a thread of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/join/join_messages.h"
#include "cluster/join/ticket.h"

namespace motley {

struct InviteOptions {
  int places = 1;
  double valid_s = 900;                // for a machine's first connection
  double silence_s = kJoinSilence_s;   // a machine that is silent for longer counts as lost
  std::string listen_address;          // numeric; "" = all of this machine
  std::uint16_t listen_port = 0;       // 0 = a free one
  std::vector<std::string> addresses;  // in the ticket; not empty
  std::set<std::string> taken_names;   // of the cluster's other machines
  // From which the machines derive the ticket (cluster/join/shared_secret.h); "" = a random ticket.
  std::string shared_secret;
  int announced = 0;  // processes of all machines, which must agree; 0 = the machines have tickets
  std::string mark;   // what machines read in the run's folder if they see it; "" = none
  // Called by the head's thread with lines for people, such as "box has joined". Must not wait.
  std::function<void(const std::string& line)> say;
};

// A machine that was admitted; it may be absent for a while.
struct JoinedMachine {
  std::string name;
  std::string address;       // its own end of the connection
  std::string seen_address;  // from which the head sees it: another one behind a router
  std::string head_address;  // at which it reached the head
  std::string files;         // its folder for files that are sent
  std::string runs;          // its folder for its parts of runs
  int processes = 1;         // the places that it takes
  bool sees_run = false;     // whether it has shown the mark
  bool is_connected = true;
};

class JoinHead {
 public:
  // Begins to listen. kPeer if that is not possible.
  [[nodiscard]] static Result<std::unique_ptr<JoinHead>> open(InviteOptions options);
  // Ends the run on all machines: sends each how it has ended.
  ~JoinHead();
  JoinHead(const JoinHead&) = delete;
  JoinHead& operator=(const JoinHead&) = delete;

  // Of this head. Its secret is for people only.
  [[nodiscard]] const Ticket& ticket() const;
  // In the order of their first connections.
  [[nodiscard]] std::vector<JoinedMachine> machines() const;
  // What the destructor sends; by default, status 0.
  void set_end(int status, const std::string& problem);
  // The socket for local_request.h.
  [[nodiscard]] std::filesystem::path socket() const;

 private:
  class Impl;
  explicit JoinHead(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley

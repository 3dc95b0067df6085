// JoinDoor: the listener of a head, and the connections whose machines are not yet admitted. Each
// of them costs bounded memory and time, and their number is bounded: when too many are open, those
// that have sent nothing are closed first. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/system/owned_fd.h"
#include "cluster/join/join_identity.h"
#include "cluster/join/join_messages.h"
#include "cluster/join/peer_address.h"
#include "cluster/join/poll_set.h"
#include "cluster/join/tls_link.h"

namespace motley {

// A machine that has shown its key and said hello.
struct ArrivedMachine {
  std::unique_ptr<TlsLink> link;
  JoinHello hello;
  ConnectionAddresses addresses;
};

class JoinDoor {
 public:
  static constexpr std::size_t kHalfOpenMax = 64;
  static constexpr double kGreeting_s = 10;  // from the connection to its hello
  static constexpr double kAcceptedPerSecond = 200;

  // The identity must outlive the door.
  JoinDoor(OwnedFd listener, const JoinIdentity& identity);

  void watch(PollSet& polled);
  // Closes what has waited too long; returns the machines that have said hello.
  [[nodiscard]] std::vector<ArrivedMachine> take_arrivals();
  // Sends the refusal and closes the connection.
  void refuse(ArrivedMachine arrival, const Error& refusal);

 private:
  struct HalfOpen {
    std::unique_ptr<TlsLink> link;
    ConnectionAddresses addresses;
    double since_s = 0;
    bool is_refused = false;  // ends once the refusal was sent
    bool has_failed = false;
    bool is_ready = false;
    JoinHello hello;
  };

  void accept();
  void advance(HalfOpen& one);
  void make_room();
  void say_refusal(HalfOpen& one, const Error& refusal);

  OwnedFd listener_;
  const JoinIdentity& identity_;
  std::vector<std::unique_ptr<HalfOpen>> half_open_;
  double credit_ = kAcceptedPerSecond;  // connections that may be accepted now
  double credited_at_s_;
};

}  // namespace motley

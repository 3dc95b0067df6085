#include "cli/launch/local_group.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/hash.h"
#include "base/process/stop_signals.h"

namespace motley {
namespace {

constexpr double kPause_s = 0.2;
// After a signal: longer than the joined process itself waits for a saved step.
constexpr double kSavedStepMax_s = 75;

struct AbstractAddress {
  sockaddr_un value{};
  socklen_t bytes = 0;
};

AbstractAddress address_of_group(std::string_view group) {
  const std::string name =
      "motley-" + std::to_string(::geteuid()) + "-" + hash128_hex(std::as_bytes(std::span(group)));
  AbstractAddress address;
  address.value.sun_family = AF_UNIX;
  std::memcpy(&address.value.sun_path[1], name.data(), name.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

OwnedFd new_socket(int type) {
  return OwnedFd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
}

bool is_own_user(const OwnedFd& socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == ::geteuid();
}

bool is_readable(int fd, double seconds) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, static_cast<int>(seconds * 1e3)) > 0;
}

// A connection to the process that joins; not open if there is none yet.
Result<OwnedFd> connect_to_leader(const AbstractAddress& address) {
  OwnedFd socket = new_socket(SOCK_STREAM);
  const auto* const place = reinterpret_cast<const sockaddr*>(&address.value);
  if (!socket.open() || ::connect(socket.get(), place, address.bytes) != 0) return OwnedFd();
  if (is_own_user(socket)) return socket;
  return Error{ErrorCode::kUnauthorised, "a process of another user poses as one of this start",
               "it listens at the name of this machine's group of processes", ""};
}

Error lost_leader() {
  return {ErrorCode::kPeer, "the process that joined for this machine was lost",
          "it ended without a status", "its own messages say more; start again"};
}

}  // namespace

Result<LocalGroup> LocalGroup::lead(std::string_view group, int others) {
  const AbstractAddress address = address_of_group(group);
  OwnedFd listener = new_socket(SOCK_STREAM | SOCK_NONBLOCK);
  const auto* const place = reinterpret_cast<const sockaddr*>(&address.value);
  const bool listens = listener.open() && ::bind(listener.get(), place, address.bytes) == 0 &&
                       ::listen(listener.get(), std::max(others, 1)) == 0;
  if (listens) return LocalGroup(std::move(listener), others);
  if (errno != EADDRINUSE) {
    return Error{ErrorCode::kPeer, "the processes of this machine cannot meet",
                 std::strerror(errno), ""};
  }
  return Error{ErrorCode::kPeer, "another process of this start joins for this machine already",
               "it has the local number 0 too, or is left over from an earlier start",
               "give each process of a machine its own LOCAL_RANK, or end the earlier start"};
}

void LocalGroup::end(int status) {
  const Deadline deadline = Deadline::after_s(kLate_s);
  for (int answered = 0; answered < others_; ++answered) {
    if (!is_readable(listener_.get(), deadline.left_s())) return;
    const OwnedFd other(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!other.open()) continue;
    const auto byte = static_cast<std::uint8_t>(status);
    if (is_own_user(other)) (void)::send(other.get(), &byte, 1, MSG_NOSIGNAL);
  }
}

Result<int> follow_group(std::string_view group, double wait_s) {
  const AbstractAddress address = address_of_group(group);
  StopSignals signals;
  std::optional<Error> stop;
  Deadline until = Deadline::after_s(wait_s);
  OwnedFd leader;
  while (!until.passed()) {
    if (!leader.open()) {
      MOTLEY_ASSIGN(leader, connect_to_leader(address));
    }
    pollfd fds[] = {{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                    {.fd = leader.open() ? leader.get() : -1, .events = POLLIN, .revents = 0}};
    (void)::poll(fds, 2, static_cast<int>(kPause_s * 1e3));
    if (const auto signal = signals.take()) {
      if (stop || !leader.open()) return *signal;
      stop = *signal;
      until = Deadline::after_s(kSavedStepMax_s);
    }
    if (leader.open() && !stop) until = Deadline::after_s(wait_s);
    if (fds[1].revents == 0) continue;
    std::uint8_t status = 0;
    if (::read(leader.get(), &status, 1) == 1) return static_cast<int>(status);
    return stop ? *stop : lost_leader();
  }
  if (stop) return *stop;
  return Error{ErrorCode::kPeer, "the process that joins for this machine has not started",
               "no process with the local number 0 has come",
               "check that the launcher starts one on each machine, with LOCAL_RANK 0"};
}

}  // namespace motley

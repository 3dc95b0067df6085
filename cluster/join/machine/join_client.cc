#include "cluster/join/machine/join_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "cluster/join/machine/join_session.h"
#include "cluster/join/peer_address.h"
#include "cluster/join/poll_set.h"

namespace motley {
namespace {

constexpr double kConnect_s = 4;
constexpr double kGreeting_s = 10;
constexpr double kFirstPause_s = 0.5;
constexpr double kLongestPause_s = 5;

struct Joined {
  std::unique_ptr<TlsLink> link;
  JoinWelcome welcome;
};

// Waits until `is_done`; an error if the link or a signal ends it, or after kGreeting_s.
template <class IsDone>
Result<void> wait_for(TlsLink& link, StopSignals& signals, IsDone is_done) {
  const Deadline deadline = Deadline::after_s(kGreeting_s);
  for (;;) {
    MOTLEY_TRY(link.advance());
    MOTLEY_ASSIGN(const bool done, is_done());
    if (done) return {};
    if (deadline.passed()) {
      return Error{ErrorCode::kPeer, "the head does not answer",
                   fmt::format("for {:g} s", kGreeting_s), ""};
    }
    PollSet polled;
    polled.watch(link.fd(), link.events(), [] {});
    polled.watch(signals.fd(), POLLIN, [] {});
    polled.wait(deadline.left_s());
    if (const auto stop = signals.take()) return *stop;
  }
}

Error wrong_head(const std::string& place) {
  return {ErrorCode::kUnauthorised, fmt::format("{} is not the head of this ticket", place),
          "its key is another one: another run listens there, or something is between the machines",
          "use the ticket that the running motley launch --invite has printed"};
}

Result<JoinWelcome> read_reply(const JoinFrame& frame) {
  if (frame.kind == JoinKind::kWelcome) return read_join_text<JoinWelcome>(frame.content);
  if (frame.kind != JoinKind::kRefusal) {
    return Error{ErrorCode::kPeer, "the head violates the protocol", "it sends no welcome", ""};
  }
  MOTLEY_ASSIGN(const JoinRefusal refusal, read_join_text<JoinRefusal>(frame.content));
  constexpr std::size_t kWordsMax = 300;
  return Error{ErrorCode::kUnauthorised, "the head refused this machine",
               excerpt(refusal.cause, kWordsMax), excerpt(refusal.remedy, kWordsMax)};
}

Result<Joined> join_at(const std::string& address,
                       const JoinOptions& options,
                       const JoinHome& home,
                       const JoinIdentity& identity,
                       StopSignals& signals) {
  const Ticket& ticket = options.ticket;
  MOTLEY_ASSIGN(OwnedFd socket, connect_to(address, ticket.port, kConnect_s));
  const std::string own_address = addresses_of(socket).here;
  Joined joined;
  joined.link = std::make_unique<TlsLink>(std::move(socket), identity, TlsLink::Role::kMachine);
  TlsLink& link = *joined.link;
  MOTLEY_TRY(wait_for(link, signals, [&] { return Result<bool>(link.is_established()); }));
  if (link.peer_fingerprint() != ticket.fingerprint) {
    return wrong_head(place_text(address, ticket.port));
  }
  const ProofContext context{link.exported(), ticket.fingerprint, identity.fingerprint()};
  link.send(JoinKind::kHello, 0,
            join_text(JoinHello{options.name, to_hex(ticket_proof(ticket.secret, context)),
                                home.files().string(), home.runs().string(), own_address}));
  MOTLEY_TRY(wait_for(link, signals, [&]() -> Result<bool> {
    MOTLEY_ASSIGN(const std::optional<JoinFrame> frame, link.next());
    if (!frame) return false;
    MOTLEY_ASSIGN(joined.welcome, read_reply(*frame));
    return true;
  }));
  return joined;
}

// At the first address that works. The most telling error: one of a head that has answered.
Result<Joined> join_anywhere(const JoinOptions& options,
                             const JoinHome& home,
                             const JoinIdentity& identity,
                             StopSignals& signals) {
  std::optional<Error> answered;
  std::string tried;
  for (const std::string& address : options.ticket.addresses) {
    Result<Joined> joined = join_at(address, options, home, identity, signals);
    if (joined.ok() || is_stop(joined.error())) return joined;
    const Error& error = joined.error();
    if (error.code == ErrorCode::kUnauthorised && !answered) answered = error;
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ",
                         place_text(address, options.ticket.port), error.cause);
  }
  if (answered) return *answered;
  return Error{
      ErrorCode::kPeer, "no address of the ticket answers", tried,
      "check that motley launch --invite still waits, that both machines are on one network, "
      "and that the head's firewall admits the port; --listen there chooses it"};
}

Result<void> pause(double seconds, StopSignals& signals) {
  PollSet polled;
  polled.watch(signals.fd(), POLLIN, [] {});
  polled.wait(seconds);
  const auto stop = signals.take();
  return stop ? Result<void>(*stop) : Result<void>();
}

}  // namespace

Result<void> join_head(const JoinOptions& options, const JoinHome& home) {
  StopSignals signals;
  MOTLEY_ASSIGN(const JoinIdentity identity, home.identity());
  std::optional<Deadline> until;  // after a lost connection
  double pause_s = kFirstPause_s;
  for (;;) {
    Result<Joined> joined = join_anywhere(options, home, identity, signals);
    if (!joined.ok()) {
      const bool tries_again = until && !until->passed() && joined.error().code == ErrorCode::kPeer;
      if (!tries_again) return std::move(joined).error();
      MOTLEY_TRY(pause(pause_s, signals));
      pause_s = std::min(2 * pause_s, kLongestPause_s);
      continue;
    }
    options.say(fmt::format("joined as {}", joined->welcome.name));
    const double return_s = joined->welcome.return_s;
    JoinSession session(std::move(joined->link), home, options.programs, options.say);
    const Result<void> served = session.serve(signals);
    if (served.ok() || is_stop(served.error()) || options.once) return served;
    options.say(fmt::format("lost the head ({}: {}); dialling again for {:.0f} min",
                            served.error().what, served.error().cause, return_s / 60));
    until = Deadline::after_s(return_s);
    pause_s = kFirstPause_s;
  }
}

}  // namespace motley

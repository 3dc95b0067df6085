#include "cluster/join/machine/join_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "base/secret.h"
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
  JoinHome home;
  std::unique_ptr<JoinIdentity> identity;  // outlives the link
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

Error wrong_head(const std::string& place, bool may_be_outdated) {
  return {may_be_outdated ? ErrorCode::kPeer : ErrorCode::kUnauthorised,
          fmt::format("{} is not the head of this ticket", place),
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
                       const Ticket& ticket,
                       const JoinOptions& options,
                       StopSignals& signals) {
  MOTLEY_ASSIGN(OwnedFd socket, connect_to(address, ticket.port, kConnect_s));
  const std::string own_address = addresses_of(socket).here;
  MOTLEY_ASSIGN(JoinHome home, options.home(ticket.fingerprint));
  MOTLEY_ASSIGN(JoinIdentity own, home.identity());
  Joined joined{std::move(home), std::make_unique<JoinIdentity>(std::move(own)), nullptr, {}};
  const JoinIdentity& identity = *joined.identity;
  joined.link = std::make_unique<TlsLink>(std::move(socket), identity, TlsLink::Role::kMachine);
  TlsLink& link = *joined.link;
  MOTLEY_TRY(wait_for(link, signals, [&] { return Result<bool>(link.is_established()); }));
  if (link.peer_fingerprint() != ticket.fingerprint) {
    return wrong_head(place_text(address, ticket.port), options.may_be_outdated);
  }
  const ProofContext context{link.exported(), ticket.fingerprint, identity.fingerprint()};
  link.send(
      JoinKind::kHello, 0,
      join_text(JoinHello{options.name, to_hex(ticket_proof(ticket.secret, context)),
                          joined.home.files().string(), joined.home.runs().string(), own_address,
                          options.processes, options.announced, options.mark()}));
  MOTLEY_TRY(wait_for(link, signals, [&]() -> Result<bool> {
    MOTLEY_ASSIGN(const std::optional<JoinFrame> frame, link.next());
    if (!frame) return false;
    MOTLEY_ASSIGN(joined.welcome, read_reply(*frame));
    return true;
  }));
  return joined;
}

// At the first address that works. The most telling error: one of a head that has answered.
Result<Joined> join_anywhere(const Ticket& ticket,
                             const JoinOptions& options,
                             StopSignals& signals) {
  std::optional<Error> answered;
  std::string tried;
  for (const std::string& address : ticket.addresses) {
    Result<Joined> joined = join_at(address, ticket, options, signals);
    if (joined.ok() || is_stop(joined.error())) return joined;
    const Error& error = joined.error();
    if (error.code != ErrorCode::kPeer && !answered) answered = error;
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", place_text(address, ticket.port),
                         error.cause);
  }
  if (answered) return *answered;
  return Error{
      ErrorCode::kPeer, "no address of the ticket answers", tried,
      "check that motley launch --invite still waits, that both machines are on one network, "
      "and that the head's firewall admits the port; --listen there chooses it"};
}

Result<Joined> join_once(const JoinOptions& options, StopSignals& signals) {
  MOTLEY_ASSIGN(Ticket ticket, options.ticket());
  Result<Joined> joined = join_anywhere(ticket, options, signals);
  wipe(ticket.secret);
  return joined;
}

Result<void> pause(double seconds, StopSignals& signals) {
  PollSet polled;
  polled.watch(signals.fd(), POLLIN, [] {});
  polled.wait(seconds);
  const auto stop = signals.take();
  return stop ? Result<void>(*stop) : Result<void>();
}

}  // namespace

Result<JoinExit> join_head(const JoinOptions& options) {
  StopSignals signals;
  Deadline until = Deadline::after_s(options.wait_s);
  double pause_s = kFirstPause_s;
  for (;;) {
    Result<Joined> joined = join_once(options, signals);
    if (!joined.ok()) {
      const bool tries_again = !until.passed() && joined.error().code == ErrorCode::kPeer;
      if (!tries_again) return std::move(joined).error();
      MOTLEY_TRY(pause(pause_s, signals));
      pause_s = std::min(2 * pause_s, kLongestPause_s);
      continue;
    }
    options.say(fmt::format("joined as {}", joined->welcome.name));
    const double return_s = joined->welcome.return_s;
    JoinSession session(std::move(joined->link), joined->home, options.programs,
                        joined->welcome.silence_s, options.say);
    const Result<JoinExit> served = session.serve(signals);
    if (served.ok()) joined->home.end_session();
    if (served.ok() || is_stop(served.error()) || options.once) return served;
    options.say(fmt::format("lost the head ({}: {}); dialling again for {:.0f} min",
                            served.error().what, served.error().cause, return_s / 60));
    until = Deadline::after_s(return_s);
    pause_s = kFirstPause_s;
  }
}

}  // namespace motley

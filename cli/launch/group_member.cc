#include "cli/launch/group_member.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "cli/inputs.h"
#include "cli/launch/run_invitation.h"
#include "cluster/join/machine/join_client.h"
#include "cluster/join/machine/join_home.h"
#include "cluster/join/shared_secret.h"

namespace motley {
namespace {

// All addresses of a host, loopback included: a test may play several machines on one. kPeer if
// there are none yet: the name of a pod appears with the pod.
Result<std::vector<std::string>> addresses_of_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &first);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, ::freeaddrinfo);
  if (status != 0) {
    return Error{ErrorCode::kPeer, fmt::format("'{}' has no known address", excerpt(host)),
                 ::gai_strerror(status), "set MASTER_ADDR to the address of process 0"};
  }
  std::vector<std::string> addresses;
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) != 0) {
      continue;
    }
    const std::string address = text.data();
    const bool is_known = std::ranges::find(addresses, address) != addresses.end();
    if (!is_known && is_numeric_address(address)) addresses.push_back(address);
  }
  if (!addresses.empty()) return addresses;
  return Error{ErrorCode::kPeer, fmt::format("'{}' has no usable address", excerpt(host)), "",
               "set MASTER_ADDR to the address of process 0"};
}

using TicketSource = std::function<Result<Ticket>()>;

Result<TicketSource> derived_ticket(const GroupMember& member) {
  if (member.process.head.empty()) {
    return Error{ErrorCode::kUsage, "the machine of process 0 is not known",
                 fmt::format("{} does not name it", member.process.starter),
                 "set MASTER_ADDR for all processes, for example mpirun -x MASTER_ADDR=HOST"};
  }
  Ticket ticket;
  ticket.port = member.port != 0 ? member.port : member.process.port;
  MOTLEY_ASSIGN(DerivedSecret derived, derive_secret(member.secret, ticket.port));
  ticket.fingerprint = derived.head.fingerprint();
  ticket.secret = std::move(derived.ticket_secret);
  return TicketSource([ticket, host = member.process.head]() -> Result<Ticket> {
    Ticket found = ticket;
    MOTLEY_ASSIGN(found.addresses, addresses_of_host(host));
    return found;
  });
}

Result<TicketSource> written_ticket(const GroupMember& member) {
  if (!member.run_dir) {
    return Error{ErrorCode::kConfig, "the ticket of process 0 cannot be found",
                 "CONFIG, which names the folder of the run, is not on this machine",
                 "put CONFIG and the run's folder where all machines see them, or give all "
                 "processes a secret by --secret-file or MOTLEY_SECRET"};
  }
  return TicketSource([run_dir = *member.run_dir]() -> Result<Ticket> {
    MOTLEY_ASSIGN(const auto text, read_invitation(run_dir));
    if (text && !text->ticket.empty()) return parse_ticket(text->ticket);
    return Error{ErrorCode::kPeer, "process 0 has not come",
                 fmt::format("{} holds no ticket of it", (run_dir / "invitation").string()),
                 "see the messages of process 0; if this machine does not see its folder, give all "
                 "processes a secret by --secret-file or MOTLEY_SECRET"};
  });
}

// As the head has told it.
Result<void> outcome_of(const JoinExit& end, const Log& log) {
  if (end.status == 0) {
    log.info("the head has ended the run");
    return {};
  }
  return Error{static_cast<ErrorCode>(end.status),
               fmt::format("the run has ended: {}", excerpt(end.problem, 400)), "",
               "process 0 says more"};
}

}  // namespace

Result<void> join_as_member(const GroupMember& member) {
  const StartedProcess& process = member.process;
  const bool has_secret = !member.secret.empty();
  JoinOptions options;
  MOTLEY_ASSIGN(options.ticket, has_secret ? derived_ticket(member) : written_ticket(member));
  MOTLEY_ASSIGN(const std::filesystem::path stage, stage_program());
  options.programs = stage.parent_path();
  options.home = [&](const std::string& fingerprint) {
    return JoinHome::make(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"), fingerprint,
                          member.machine);
  };
  options.name = member.machine;
  options.wait_s = member.wait_s;
  options.may_be_outdated = !has_secret;
  options.processes = process.places;
  options.announced = process.processes;
  options.mark = [&]() -> std::string {
    if (!member.run_dir) return "";
    const auto text = read_invitation(*member.run_dir);
    return text.ok() && *text ? (*text)->mark : "";
  };
  const Log log("");
  options.say = [&](const std::string& line) { log.info(line); };
  log.info(fmt::format(
      "process {} of {} by {}: joins process 0{}", process.rank, process.processes, process.starter,
      has_secret ? fmt::format(" at {} port {}", process.head,
                               member.port != 0 ? member.port : process.port)
                 : fmt::format(", by {}", (*member.run_dir / "invitation").string())));
  const Result<JoinExit> end = join_head(options);
  if (end.ok()) return outcome_of(*end, log);
  Error error = end.error();
  if (error.code == ErrorCode::kUnauthorised) {
    error.remedy = "start all processes by one command, with the same secret, variables and port";
  }
  return error;
}

}  // namespace motley

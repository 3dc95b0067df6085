// motley join: lends this machine to a run on another one.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/secret.h"
#include "base/system/files.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/local_machine.h"
#include "cluster/join/machine/join_client.h"
#include "cluster/join/machine/join_home.h"

namespace motley {
namespace {

constexpr std::uint64_t kTicketBytesMax = 8192;

// The ticket in a text that may have more around it, as the command that was printed with it.
Result<Ticket> ticket_in(const std::string& text) {
  const std::size_t begin = text.find("motley1:");
  if (begin == std::string::npos) return parse_ticket(text);
  std::string word = text.substr(begin, text.find_first_of(" \t\r\n", begin) - begin);
  Result<Ticket> ticket = parse_ticket(word);
  wipe(word);
  return ticket;
}

// The operand is a ticket, "-" or a file that contains one.
Result<Ticket> read_ticket(const std::string& operand) {
  if (operand.starts_with("motley1:")) return parse_ticket(operand);
  std::string text;
  if (operand == "-") {
    while (std::getline(std::cin, text) && text.find("motley1:") == std::string::npos) continue;
  } else {
    MOTLEY_ASSIGN(const bool exists, path_exists(operand));
    if (!exists) {
      return Error{ErrorCode::kUsage, fmt::format("'{}' is no ticket", excerpt(operand)),
                   "it does not begin with motley1:, and there is no file of that name",
                   "copy the whole line that motley launch --invite has printed"};
    }
    MOTLEY_ASSIGN(text, read_input(operand, kTicketBytesMax));
  }
  Result<Ticket> ticket = ticket_in(text);
  wipe(text);
  return ticket;
}

Result<void> join(const Arguments& arguments) {
  MOTLEY_ASSIGN(Ticket ticket, read_ticket(arguments.operand(0)));
  JoinOptions options;
  options.ticket = [&ticket] { return ticket; };
  options.home = [](const std::string& fingerprint) {
    return JoinHome::make(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"), fingerprint);
  };
  MOTLEY_ASSIGN(const std::filesystem::path stage, stage_program());
  options.programs = stage.parent_path();
  options.name = arguments.has("name") ? arguments.value("name") : local_machine().name;
  options.once = arguments.has("once");
  const Log log("");
  options.say = [&](const std::string& line) { log.info(line); };
  const Result<JoinExit> end = join_head(options);
  wipe(ticket.secret);
  if (!end.ok()) return end.error();
  log.info("the head has ended the run");
  return {};
}

}  // namespace

Command join_command() {
  CommandSpec spec{
      "join",
      "lend this machine to a run, by the ticket of `motley launch --invite`",
      {"TICKET"},
      {{"name", "NAME", "this machine's name in the run (default: its host name)"},
       {"once", "", "end when the connection is lost instead of dialling again"}},
      "TICKET is the line that `motley launch --invite` prints on the head, a file that contains\n"
      "it, or - for standard input.\n\n"
      "Connects to the head, encrypted with TLS 1.3; each end proves to the other that it is the\n"
      "one of the ticket. Then the head starts Motley's worker programs of this installation\n"
      "here, and no others. The files of the run come through the same connection; they, this\n"
      "machine's parts of checkpoints and its measurements are below ~/.cache/motley.\n\n"
      "Ends with the run. Ctrl-C lets the run save its current step and leaves; the run continues\n"
      "on the other machines. A second Ctrl-C leaves at once. After a lost connection it stops the "
      "workers and dials again; the same command\n"
      "also comes back, if it is started again while the run lasts.\n\n"
      "Examples\n"
      "  motley join motley1:40123@192.168.1.10/1765000000/…   as the head has printed it\n"
      "  motley join -                                         reads the ticket\n"};
  return {spec, join};
}

}  // namespace motley

#include "cluster/join/head/local_request.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/process/stop_signals.h"
#include "cluster/join/head/local_socket.h"

namespace motley {
namespace {

int not_run(const std::string& problem) {
  std::fprintf(stderr, "motley: %s\n", problem.c_str());
  return kNotRun;
}

Error lost(const JoinedShell& shell, const std::string& cause) {
  return {ErrorCode::kPeer, fmt::format("the files of the run cannot be sent to {}", shell.machine),
          cause, "start the launch again, and join with the ticket that it prints"};
}

// Waits for an answer or a signal.
Result<std::optional<LocalMessage>> answer_or_stop(const OwnedFd& head, StopSignals& signals) {
  pollfd fds[] = {{.fd = head.get(), .events = POLLIN, .revents = 0},
                  {.fd = signals.fd(), .events = POLLIN, .revents = 0}};
  for (;;) {
    (void)::poll(fds, 2, -1);
    if (const auto stop = signals.take()) return *stop;
    if (fds[0].revents != 0) return receive_local(head);
  }
}

}  // namespace

int run_on_joined(const std::vector<std::string>& arguments) {
  constexpr std::size_t kWordsMin = 4;  // socket, machine, files and a command
  if (arguments.size() < kWordsMin) return not_run("__on needs a socket, a machine and a command");
  // It ends with the command there. A launcher that stops all processes of a machine signals this
  // one too, while the worker there saves its step.
  for (const int stop : {SIGINT, SIGTERM, SIGHUP}) std::signal(stop, SIG_IGN);
  const Result<OwnedFd> head = connect_local(arguments[0]);
  if (!head.ok()) return not_run(head.error().what);
  JoinWords request{{arguments[1]}};
  request.words.insert(request.words.end(), arguments.begin() + 3, arguments.end());
  const bool sent =
      send_local(*head, join_text(request), {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  const auto message = sent ? receive_local(*head) : std::nullopt;
  if (!message) return not_run("the head of the joined machines has ended");
  const auto exit = read_join_text<JoinExit>(message->text);
  if (!exit.ok()) return not_run(exit.error().cause);
  if (!exit->problem.empty()) return not_run(exit->problem);
  if (exit->signal != 0) {
    std::signal(exit->signal, SIG_DFL);
    ::kill(::getpid(), exit->signal);
  }
  return exit->status;
}

Result<std::uint64_t> send_files(const JoinedShell& shell,
                                 const std::vector<OfferedFile>& files,
                                 const std::function<void(std::uint64_t sent)>& progress) {
  std::uint64_t sent_bytes = 0;
  MOTLEY_ASSIGN(const OwnedFd head, connect_local(shell.socket));
  StopSignals signals;
  const std::string no_head = "the connection to it has ended";
  if (!send_local(head, join_text(JoinWords{{shell.machine, "files"}})))
    return lost(shell, no_head);
  for (std::size_t first = 0; first <= files.size(); first += kManifestPartFilesMax) {
    const std::size_t end = std::min(first + kManifestPartFilesMax, files.size());
    ManifestPart part;
    part.files.assign(files.begin() + static_cast<std::ptrdiff_t>(first),
                      files.begin() + static_cast<std::ptrdiff_t>(end));
    part.is_last = end == files.size();
    if (!send_local(head, join_text(part))) return lost(shell, no_head);
    if (part.is_last) break;
  }
  for (;;) {
    MOTLEY_ASSIGN(const auto message, answer_or_stop(head, signals));
    if (!message) return lost(shell, no_head);
    if (const auto sent = read_join_text<StreamCredit>(message->text); sent.ok()) {
      sent_bytes = sent->bytes;
      progress(sent_bytes);
      continue;
    }
    MOTLEY_ASSIGN(const JoinExit exit, read_join_text<JoinExit>(message->text));
    if (exit.problem.empty()) return sent_bytes;
    Error error = lost(shell, exit.problem);
    if (exit.status == static_cast<int>(ErrorCode::kCorrupt)) {
      error.code = ErrorCode::kCorrupt;
      error.remedy = "free space there, or set XDG_CACHE_HOME there to a folder on a larger disk";
    }
    if (exit.status == static_cast<int>(ErrorCode::kData)) {
      error.code = ErrorCode::kData;
      error.remedy = "leave the files of the run as they are while they are sent, and start again";
    }
    return error;
  }
}

}  // namespace motley

#include "cluster/join/machine/joined_command.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "cluster/launch/worker_command.h"

namespace motley {
namespace {

constexpr int kThreadsMax = 4096;
constexpr std::array<std::string_view, 2> kPrograms = {"motley-stage", "motley-store"};

bool is_program(const std::string& name) {
  return name == kPrograms[0] || name == kPrograms[1];
}

std::optional<int> thread_count(const std::string& text) {
  int threads = -1;
  const char* const last = text.data() + text.size();
  const auto [next, code] = std::from_chars(text.data(), last, threads);
  const bool is_count = code == std::errc{} && next == last && threads >= 0;
  return is_count && threads <= kThreadsMax ? std::optional(threads) : std::nullopt;
}

}  // namespace

JoinedOrder joined_order(const std::vector<std::string>& words,
                         const std::filesystem::path& programs) {
  if (words.size() == 2 && words[0] == "has" && is_program(words[1])) {
    const bool has = ::access((programs / words[1]).c_str(), X_OK) == 0;
    return {{}, {.status = has ? 0 : 1}};
  }
  const auto threads = words.size() == 3 ? thread_count(words[2]) : std::nullopt;
  if (threads && words[0] == "work" && is_program(words[1])) {
    return {worker_command({}, programs / words[1], *threads), {}};
  }
  return {{}, {.status = 255, .problem = "a joined machine starts Motley's programs only"}};
}

JoinedCommand::JoinedCommand(Process process, TlsLink& link, std::uint32_t channel)
    : process_(std::move(process)),
      link_(link),
      channel_(channel),
      input_(std::move(process_.input()), {&link, JoinKind::kInput, "input", channel}),
      output_(std::move(process_.output()), {&link, JoinKind::kOutput, "output", channel}),
      errors_(std::move(process_.errors()), {&link, JoinKind::kErrors, "errors", channel}) {}

void JoinedCommand::watch(PollSet& polled) {
  if (exit_ && output_.has_ended() && errors_.has_ended() && !is_over_) {
    const JoinExit exit{.status = exit_->status, .signal = exit_->signal};
    link_.send(JoinKind::kExit, channel_, join_text(exit));
    is_over_ = true;
  }
  if (is_over_) return;
  input_.watch(polled);
  output_.watch(polled);
  errors_.watch(polled);
  // Ends the rest of its group, so that its streams end too.
  if (!exit_) polled.watch(process_.exit_fd(), POLLIN, [this] { exit_ = process_.reap(); });
}

void JoinedCommand::ask_to_end() {
  if (!exit_) ::kill(process_.pid(), SIGTERM);
}

Result<void> JoinedCommand::take(const JoinFrame& frame) {
  if (frame.kind == JoinKind::kKill) return kill(), Result<void>();
  if (frame.kind == JoinKind::kInput && input_.take(frame.content)) return {};
  if (frame.kind == JoinKind::kCredit) {
    MOTLEY_ASSIGN(const StreamCredit credit, read_join_text<StreamCredit>(frame.content));
    if (credit.stream == "output") return output_.grant(credit.bytes), Result<void>();
    if (credit.stream == "errors") return errors_.grant(credit.bytes), Result<void>();
  }
  return Error{ErrorCode::kPeer, "the head violates the protocol",
               fmt::format("a message of kind {} out of place", static_cast<int>(frame.kind)),
               "use the same version of Motley on every machine"};
}

}  // namespace motley

#include "base/system/process_identity.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/system/computer_id.h"
#include "base/system/files.h"

namespace motley {
namespace {

struct ProcessState {
  char letter = '?';  // 'Z': zombie
  std::uint64_t started = 0;
};

// From /proc/PID/stat, whose second field is the name in parentheses, with arbitrary characters.
// nullopt if /proc hides the process.
std::optional<ProcessState> look_up(std::int64_t pid) {
  constexpr std::uint64_t kBytesMax = 1 << 16;
  constexpr int kFieldsBetween = 18;  // between fields 3 (state) and 22 (start)
  const Result<std::string> text = read_file(fmt::format("/proc/{}/stat", pid), kBytesMax);
  if (!text) return {};
  const std::size_t end = text->rfind(')');
  if (end == text->npos) return {};
  std::istringstream fields(text->substr(end + 1));
  ProcessState state;
  std::string skipped;
  fields >> state.letter;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> state.started;
  if (!fields) return {};
  return state;
}

// The computer alone is not enough: processes in two containers of one machine cannot see each
// other.
std::string process_table() {
  const std::string computer = computer_id();
  std::error_code code;
  const auto pids = std::filesystem::read_symlink("/proc/self/ns/pid", code);
  if (computer.empty() || code) return "";
  return computer + " " + pids.string();
}

}  // namespace

ProcessIdentity this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  ProcessIdentity self{host.data(), process_table(), ::getpid(), 0, installation_id()};
  if (const auto state = look_up(self.pid)) self.started = state->started;
  return self;
}

bool is_of_earlier_boot(const ProcessIdentity& process) {
  const ProcessIdentity self = this_process();
  const auto boot_of = [](const ProcessIdentity& any) {
    return any.place.substr(0, any.place.find(' '));
  };
  const bool is_known =
      !process.installation.empty() && !process.place.empty() && !self.place.empty();
  return is_known && process.installation == self.installation && process.host == self.host &&
         boot_of(process) != boot_of(self);
}

ProcessLiveness liveness_of(const ProcessIdentity& process) {
  if (process.place.empty() || process.pid < 1 || process.place != process_table()) {
    return ProcessLiveness::kElsewhere;
  }
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH)
    return ProcessLiveness::kGone;
  const auto state = look_up(process.pid);
  if (!state) return ProcessLiveness::kRuns;
  const bool is_gone =
      state->letter == 'Z' || state->letter == 'X' || state->started != process.started;
  return is_gone ? ProcessLiveness::kGone : ProcessLiveness::kRuns;
}

}  // namespace motley

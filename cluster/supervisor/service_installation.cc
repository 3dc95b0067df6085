#include "cluster/supervisor/service_installation.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/process/process.h"
#include "base/system/files.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnitBytesMax = 1 << 20;

Result<fs::path> unit_folder() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return fs::path(config) / "systemd/user";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return fs::path(home) / ".config/systemd/user";
  return Error{ErrorCode::kConfig, "no folder for the unit", "HOME is not set", "set HOME"};
}

Result<void> check_lines(const ServiceUnit& unit) {
  std::vector<std::string> texts = unit.command;
  texts.push_back(unit.run_dir.string());
  texts.push_back(unit.working_folder.string());
  for (const auto& [name, value] : unit.environment) texts.push_back(value);
  const auto found = std::ranges::find_if(
      texts, [](const std::string& text) { return text.find('\n') != text.npos; });
  if (found == texts.end()) return {};
  return Error{ErrorCode::kConfig, "a unit of systemd cannot have line feeds in its values",
               excerpt(*found), "give the value without line feeds"};
}

// Its messages if it fails; an empty text if it succeeds.
Result<std::string> run_systemctl(const std::vector<std::string>& arguments) {
  constexpr int kWait_ms = 60'000;
  std::vector<std::string> argv = {"systemctl", "--user"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  MOTLEY_ASSIGN(Process process, Process::start(argv));
  process.input().reset();
  pollfd ended{.fd = process.exit_fd(), .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, kWait_ms) != 1) return std::string("systemctl does not end");
  char text[4096];
  const ssize_t bytes = ::read(process.errors().get(), text, sizeof text);
  const ProcessExit end = process.reap();
  if (end.status == 0 && end.signal == 0) return std::string();
  std::string words(text, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  if (words.ends_with('\n')) words.pop_back();
  return words.empty() ? fmt::format("systemctl ended with status {}", end.status) : words;
}

}  // namespace

Result<fs::path> write_unit(const ServiceUnit& unit) {
  MOTLEY_TRY(check_lines(unit));
  MOTLEY_ASSIGN(const fs::path folder, unit_folder());
  const fs::path path = folder / unit_name(unit.run_dir);
  MOTLEY_ASSIGN(const bool exists, path_exists(path));
  if (exists) {
    MOTLEY_ASSIGN(const std::string text, read_file(path, kUnitBytesMax));
    if (run_of_unit(text) != unit.run_dir.string()) {
      const std::string run = run_of_unit(text);
      return Error{ErrorCode::kConfig, fmt::format("there is a unit {}", path.string()),
                   run.empty() ? "it was not written by motley" : fmt::format("it is of {}", run),
                   "remove it, or give the run's folder another name with --run"};
    }
  }
  MOTLEY_TRY(make_folders(folder));
  MOTLEY_TRY(write_file_atomic(path, unit_text(unit)));
  return path;
}

Result<void> start_unit(const ServiceUnit& unit) {
  const std::string name = unit_name(unit.run_dir);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"daemon-reload"}, {"enable", "--now", name}}) {
    const Result<std::string> words = run_systemctl(arguments);
    if (words.ok() && words->empty()) continue;
    return Error{ErrorCode::kConfig, fmt::format("{} is written, but cannot be started", name),
                 excerpt(words.ok() ? *words : words.error().cause, 400),
                 fmt::format("log in as this user, so that its systemd runs, and start it:\n"
                             "systemctl --user enable --now {}",
                             name)};
  }
  return {};
}

}  // namespace motley

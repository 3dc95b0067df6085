#include "cli/run_commands.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/system/shell_word.h"
#include "cluster/supervisor/service_installation.h"
#include "plan/device_kinds.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// The environment variables in use, with their values.
std::vector<std::pair<std::string, std::string>> environment_of(const ResolvedConfig& resolved) {
  std::set<std::string> names = {kDeviceLibraryVariable};
  for (const auto& [key, origin] : resolved.origins) {
    if (origin.starts_with("MOTLEY_")) names.insert(origin);
  }
  std::vector<std::pair<std::string, std::string>> environment;
  for (const std::string& name : names) {
    if (const char* value = std::getenv(name.c_str())) environment.emplace_back(name, value);
  }
  return environment;
}

Result<ServiceUnit> service_unit_of(const Arguments& arguments, const ResolvedConfig& resolved) {
  for (const char* option : {"resume", "auto-resume", "stop-after", "invite", "from-env", "json"}) {
    if (!arguments.has(option)) continue;
    const bool resumes = std::string(option).ends_with("resume");
    return Error{ErrorCode::kUsage, fmt::format("--service and --{} exclude each other", option),
                 resumes ? "the service starts the run or resumes it by itself"
                         : "the service keeps the run going without a user",
                 "leave one of them out"};
  }
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (code) {
    return Error{ErrorCode::kInternal, "cannot find this program's file", code.message(), ""};
  }
  ServiceUnit unit{.run_dir = fs::absolute(resolved.config.run.dir).lexically_normal(),
                   .working_folder = fs::current_path(),
                   .environment = environment_of(resolved),
                   .command = {program.string()}};
  if (!unit.run_dir.has_filename()) unit.run_dir = unit.run_dir.parent_path();  // it ended in '/'
  const auto words = arguments.words({"service", "no-start", "dry-run"}, {"auto-resume"});
  unit.command.insert(unit.command.end(), words.begin(), words.end());
  return unit;
}

void print_service(const ServiceUnit& unit, const fs::path& path, bool is_started) {
  const std::string name = unit_name(unit.run_dir);
  const char* const user = std::getenv("USER");
  fmt::print("{}\n", path.string());
  if (!is_started) fmt::print("start                  systemctl --user enable --now {}\n", name);
  fmt::print(
      "follow                 motley watch {run}\n"
      "messages               journalctl --user --unit {name} --follow\n"
      "save the step and end  systemctl --user stop {name}\n"
      "continue               systemctl --user start {name}\n"
      "also without a login   loginctl enable-linger {user}\n"
      "remove                 systemctl --user disable --now {name}; rm {path}\n",
      fmt::arg("run", quote_for_shell(unit.run_dir.string())), fmt::arg("name", name),
      fmt::arg("user", user == nullptr ? "" : quote_for_shell(user)),
      fmt::arg("path", quote_for_shell(path.string())));
}

}  // namespace

Commands commands_of(const Arguments& arguments, const ResolvedConfig& resolved) {
  std::string environment;
  for (const auto& [name, value] : environment_of(resolved)) {
    environment += fmt::format("{}={} ", name, quote_for_shell(value));
  }
  const auto line = [&](const std::vector<std::string>& without) {
    // With --auto-resume the command itself resumes.
    const bool has_auto = arguments.has("auto-resume");
    return environment + arguments.command_line(without, {has_auto ? "auto-resume" : "resume"});
  };
  const std::string again =
      arguments.has("auto-resume")
          ? line({"dry-run"})
          : environment + arguments.command_line({"resume", "allow-changes", "dry-run"}, {});
  return {again, line({"dry-run"}), line({"dry-run", "allow-changes"}),
          line({"dry-run", "allow-changes", "stop-after"})};
}

Result<void> install_service(const Arguments& arguments, const ResolvedConfig& resolved) {
  MOTLEY_ASSIGN(const ServiceUnit unit, service_unit_of(arguments, resolved));
  if (arguments.has("dry-run")) {
    fmt::print("{}", unit_text(unit));
    return {};
  }
  MOTLEY_ASSIGN(const fs::path path, write_unit(unit));
  const bool starts = !arguments.has("no-start");
  if (starts) MOTLEY_TRY(start_unit(unit));
  if (!arguments.has("quiet")) print_service(unit, path, starts);
  return {};
}

}  // namespace motley

#include "cluster/supervisor/service_unit.h"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

namespace motley {
namespace {

constexpr std::string_view kRunKey = "\n[X-Motley]\nRun=";

std::string doubled(const std::string& text, std::string_view characters) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != characters.npos) result += c;
    result += c;
  }
  return result;
}

// In double quotes, as systemd.syntax(7) and systemd.service(5) define them; '%' begins a
// specifier.
std::string quoted(const std::string& word) {
  std::string result = "\"";
  for (const char c : doubled(word, "%")) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string command_line(const std::vector<std::string>& words) {
  std::string line = quoted(words.front());  // in which '$' is no variable
  for (std::size_t i = 1; i < words.size(); ++i) line += " " + quoted(doubled(words[i], "$"));
  return line;
}

}  // namespace

std::string unit_name(const std::filesystem::path& run_dir) {
  std::string name = run_dir.filename().string();
  for (char& c : name) {
    const bool is_valid = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                          std::string_view(":_.-").find(c) != std::string_view::npos;
    if (!is_valid) c = '_';
  }
  return fmt::format("motley-{}.service", name);
}

std::string unit_text(const ServiceUnit& unit) {
  std::string environment;
  for (const auto& [name, value] : unit.environment) {
    environment += fmt::format("Environment={}\n", quoted(name + "=" + value));
  }
  const std::string text = fmt::format(
      R"([Unit]
Description=Motley: the run {run}
# Restarts without limit: a machine of the run may be away for days.
StartLimitIntervalSec=0

[Service]
Type=exec
WorkingDirectory={folder}
{environment}ExecStart={command}
# SIGTERM goes to the launcher alone: it saves the step and ends its workers. Workers of a launcher
# that was killed save the step themselves and end; the next launcher waits for them.
KillMode=process
TimeoutStopSec=600
OOMPolicy=continue
# 130, 143: ended by a signal, after the step was saved.
SuccessExitStatus=130 143
Restart=on-failure
RestartSec=30
# Mistakes, damage and divergence, which a restart repeats: docs/exit-status.md.
RestartPreventExitStatus=2 3 5 6 7 8 9

[Install]
WantedBy=default.target
{key}{run_dir}
)",
      fmt::arg("run", doubled(unit.run_dir.filename().string(), "%")),
      fmt::arg("folder", doubled(unit.working_folder.string(), "%")),
      fmt::arg("environment", environment), fmt::arg("command", command_line(unit.command)),
      fmt::arg("key", kRunKey), fmt::arg("run_dir", unit.run_dir.string()));
  return text;
}

std::string run_of_unit(const std::string& text) {
  const std::size_t at = text.find(kRunKey);
  if (at == text.npos) return "";
  const std::size_t begin = at + kRunKey.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace motley

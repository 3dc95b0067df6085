#include "cluster/join/head/send_run_files.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/clock.h"
#include "cluster/join/head/local_request.h"
#include "cluster/join/head/needed_files.h"
#include "plan/cluster/joined_shell.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

std::string amount_text(std::uint64_t bytes) {
  return bytes_text(static_cast<double>(bytes));
}

}  // namespace

Result<void> send_run_files(const Cluster& cluster,
                            const std::set<std::string>& machines,
                            const Config& config,
                            ProgressLine* line,
                            const Log& log) {
  std::vector<JoinedShell> joined;
  for (const Machine& machine : cluster.machines) {
    const auto shell = joined_shell(machine.shell);
    if (shell && machines.contains(machine.name)) joined.push_back(*shell);
  }
  if (joined.empty()) return {};
  const auto show = [&](const std::string& text) {
    if (line != nullptr) line->say(text);
  };
  MOTLEY_ASSIGN(const auto files, needed_files(config, [&](const std::string& path) {
                  show(fmt::format("hashing {}", path));
                }));
  if (files.empty()) return {};
  for (const JoinedShell& machine : joined) {
    const double began_s = now_s();
    MOTLEY_ASSIGN(
        const std::uint64_t sent, send_files(machine, files, [&](std::uint64_t bytes) {
          show(fmt::format("sending files to {}: {}", machine.machine, amount_text(bytes)));
        }));
    log.info(sent == 0 ? fmt::format("{} has the files of the run", machine.machine)
                       : fmt::format("sent {} of files to {} in {:.1f} s", amount_text(sent),
                                     machine.machine, now_s() - began_s));
  }
  if (line != nullptr) line->clear();
  return {};
}

}  // namespace motley

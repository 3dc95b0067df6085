#include "plan/cluster/joined_shell.h"

namespace motley {

std::vector<std::string> joined_prefix(const JoinedShell& shell) {
  return {shell.program.string(), std::string(kOnCommand), shell.socket.string(), shell.machine,
          shell.files.string()};
}

std::optional<JoinedShell> joined_shell(const std::vector<std::string>& prefix) {
  constexpr std::size_t kWords = 5;
  if (prefix.size() != kWords || prefix[1] != kOnCommand) return std::nullopt;
  return JoinedShell{prefix[0], prefix[2], prefix[3], prefix[4]};
}

std::string path_there(const JoinedShell& shell, const std::string& path) {
  return path.empty() ? path : shell.files.string() + path;
}

}  // namespace motley

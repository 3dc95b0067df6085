// motley completion: prints the completion script for a shell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "base/toml.h"
#include "cli/command.h"
#include "cli/guide/guide.h"

namespace motley {
namespace {

Result<void> completion(const Arguments& arguments) {
  const std::string& shell = arguments.operand(0);
  const std::vector<std::string>& shells = completed_shells();
  if (std::ranges::find(shells, shell) == shells.end()) {
    return Error{ErrorCode::kUsage, fmt::format("no completion for '{}'", excerpt(shell)), "",
                 fmt::format("one of {}", fmt::join(shells, ", "))};
  }
  std::fputs(completion_script(shell, completion_table()).c_str(), stdout);
  return {};
}

}  // namespace

Command completion_command() {
  CommandSpec spec{
      "completion",
      "print a completion script for a shell",
      {"SHELL"},
      {},
      "SHELL is bash, zsh or fish. The printed script completes commands, options, keys of\n"
      "--set and files. Motley's packages install it for all three; otherwise add a line to\n"
      "~/.bashrc or ~/.zshrc (there after compinit), or a file for fish.\n\n"
      "Examples\n"
      "  source <(motley completion bash)\n"
      "  motley completion fish > ~/.config/fish/completions/motley.fish\n"};
  return {spec, completion};
}

}  // namespace motley

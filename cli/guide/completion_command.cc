// motley completion: prints the completion script for a shell. motley __complete: prints the
// candidates that these scripts show.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "base/toml.h"
#include "cli/command.h"
#include "cli/guide/completion.h"
#include "cli/guide/guide.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

Result<void> completion(const Arguments& arguments) {
  const std::vector<CompletionScript>& scripts = completion_scripts();
  const auto script = std::ranges::find(scripts, arguments.operand(0), &CompletionScript::shell);
  if (script == scripts.end()) {
    std::vector<std::string> shells;
    for (const CompletionScript& each : scripts) shells.push_back(each.shell);
    return Error{ErrorCode::kUsage,
                 fmt::format("no completion for '{}'", excerpt(arguments.operand(0))), "",
                 fmt::format("one of {}", fmt::join(shells, ", "))};
  }
  std::fputs(script->text.c_str(), stdout);
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

void print_completion(std::vector<std::string> words) {
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  std::fputs(completion_text(complete(words, all_specs(), config_keys())).c_str(), stdout);
}

}  // namespace motley

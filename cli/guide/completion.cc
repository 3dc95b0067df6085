#include "cli/guide/completion.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace motley {

const std::vector<std::string>& completed_shells() {
  static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(const std::string& shell, const CompletionTable& table) {
  if (shell == "bash") return bash_completion(table);
  if (shell == "zsh") return zsh_completion(table);
  MOTLEY_CHECK(shell == "fish", "no script for the shell {}", shell);
  return fish_completion(table);
}

CompletionKind completion_kind(std::string_view name) {
  // RUN may be a run's folder or other weights, so files are completed too.
  static constexpr std::array<std::string_view, 9> kPaths = {
      "A", "B", "CONFIG", "FILE", "FOLDER", "OUT", "PATH", "PLAN", "RUN"};
  if (std::ranges::find(kPaths, name) != kPaths.end()) return CompletionKind::kPath;
  if (name == "DIR") return CompletionKind::kFolder;
  if (name == "KEY=VALUE") return CompletionKind::kKey;
  if (name == "SHELL") return CompletionKind::kShell;
  return CompletionKind::kAnything;
}

CompletionKind operand_kind(const CommandSpec& spec) {
  return spec.operands.empty() ? CompletionKind::kAnything : completion_kind(spec.operands.back());
}

std::vector<FirstWord> first_words(const std::vector<CommandSpec>& commands) {
  std::vector<FirstWord> all;
  for (const CommandSpec& spec : commands) {
    const std::size_t space = spec.name.find(' ');
    const std::string word = spec.name.substr(0, space);
    auto found = std::ranges::find(all, word, &FirstWord::word);
    if (found == all.end()) found = all.insert(all.end(), FirstWord{word, "", {}});
    if (space == std::string::npos) {
      found->summary = spec.summary;
    } else {
      found->summary += (found->family.empty() ? "" : ", ") + second_word(spec);
      found->family.push_back(&spec);
    }
  }
  return all;
}

std::string second_word(const CommandSpec& spec) {
  return spec.name.substr(spec.name.find(' ') + 1);
}

}  // namespace motley

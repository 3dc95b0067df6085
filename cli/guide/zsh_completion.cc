#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/guide/completion.h"

namespace motley {
namespace {

constexpr std::string_view kZshEnd = R"(
# Not while it is only read, as by source <(motley completion zsh).
if [[ $funcstack[1] == _motley ]]; then
  _motley "$@"
else
  compdef _motley motley
fi
)";

// Single-quoted, with a backslash before each of the `special` characters.
std::string zsh_quoted(const std::string& text, std::string_view special) {
  std::string inside;
  for (const char c : text) {
    if (c == '\'') {
      inside += "'\\''";
      continue;
    }
    if (c == '\\' || special.find(c) != std::string_view::npos) inside += '\\';
    inside += c;
  }
  return inside;
}

// The _arguments function that completes such a value; " " completes nothing.
std::string zsh_action(CompletionKind kind) {
  switch (kind) {
    case CompletionKind::kAnything:
      return " ";
    case CompletionKind::kPath:
      return "_files";
    case CompletionKind::kFolder:
      return "_files -/";
    case CompletionKind::kKey:
      return "_motley_key";
    case CompletionKind::kShell:
      return fmt::format("({})", fmt::join(completed_shells(), " "));
  }
  return " ";
}

// One argument of _arguments: '--stages=[exactly N stages]:N: '.
std::string zsh_option(const OptionSpec& option) {
  const bool has_value = !option.value.empty();
  const std::string repeated = option.repeated ? "*" : "";
  std::string end = fmt::format("[{}]", zsh_quoted(option.help, "[]:"));
  if (has_value) {
    end += fmt::format(":{}:{}", zsh_quoted(option.value, ":"),
                       zsh_action(completion_kind(option.value)));
  }
  const std::string name = fmt::format("--{}{}", option.name, has_value ? "=" : "");
  if (option.letter == 0) return fmt::format("'{}{}{}'", repeated, name, end);
  const std::string letter = fmt::format("-{}{}", option.letter, has_value ? "+" : "");
  const std::string alone =
      option.repeated ? "" : fmt::format("(-{} --{})", option.letter, option.name);
  return fmt::format("'{}{}'{{{},{}}}'{}'", alone, repeated, letter, name, end);
}

std::string zsh_branch(const CommandSpec& spec) {
  std::string text = fmt::format("    ('{}')\n      _arguments -s -S", spec.name);
  for (const OptionSpec& option : options_with_help(spec)) {
    text += " \\\n        " + zsh_option(option);
  }
  for (std::size_t i = 0; i < spec.operands.size(); ++i) {
    text += fmt::format(" \\\n        '{}:{}:{}'", i + 1, spec.operands[i],
                        zsh_action(completion_kind(spec.operands[i])));
  }
  return text + "\n      ;;\n";
}

std::string zsh_described(const std::string& word, const std::string& summary) {
  return fmt::format("        '{}:{}'\n", word, zsh_quoted(summary, ""));
}

}  // namespace

std::string zsh_completion(const CompletionTable& table) {
  std::string firsts;
  std::string families;
  for (const FirstWord& first : first_words(table.commands)) {
    firsts += zsh_described(first.word, first.summary);
    if (first.family.empty()) continue;
    std::string seconds;
    for (const CommandSpec* spec : first.family) {
      seconds += zsh_described(second_word(*spec), spec->summary);
    }
    families += fmt::format(
        "    ({})\n      if ((CURRENT == 3)); then\n        choices=(\n{}        )\n"
        "        _describe command choices\n        return\n      fi\n"
        "      command+=\" $words[3]\"\n      shift words\n      ((CURRENT -= 1))\n      ;;\n",
        first.word, seconds);
  }
  std::string branches;
  for (const CommandSpec& spec : table.commands) branches += zsh_branch(spec);
  return fmt::format(
      "#compdef motley\n# Completion of motley in zsh, as `motley completion zsh` prints it.\n"
      "_motley_key() {{\n  local -a keys=({})\n  compadd -S = -a keys\n}}\n"
      "_motley() {{\n  local -a choices\n  local help=''\n"
      "  if ((CURRENT > 2)) && [[ $words[2] == help ]]; then\n"
      "    help=yes\n    shift words\n    ((CURRENT -= 1))\n  fi\n"
      "  if ((CURRENT == 2)); then\n    choices=(\n{}        'help:explain a command'\n    )\n"
      "    _describe command choices\n    return\n  fi\n"
      "  local command=$words[2]\n  case $command in\n{}  esac\n"
      "  [[ -z $help ]] || return 1\n  shift words\n  ((CURRENT -= 1))\n"
      "  case $command in\n{}  esac\n}}\n{}",
      fmt::join(table.keys, " "), firsts, families, branches, kZshEnd);
}

}  // namespace motley

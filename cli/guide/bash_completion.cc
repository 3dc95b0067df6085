#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/guide/completion.h"

namespace motley {
namespace {

constexpr std::string_view kBashBegin =
    R"(# Completion of motley in bash, as `motley completion bash` prints it.
_motley() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} kind='' words='' options=''
  # bash parts --option=value at its sign.
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  local at=1 command=${COMP_WORDS[1]}
  [[ $command != help ]] || ((COMP_CWORD == 1)) || at=2 command=${COMP_WORDS[2]}
)";

constexpr std::string_view kBashEnd =
    R"(  [[ -z $options || $cur != -* ]] || kind=words words=$options
  COMPREPLY=()
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
    path) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    key) compopt -o nospace; mapfile -t COMPREPLY < <(compgen -S = -W "$keys" -- "$cur") ;;
    shell) mapfile -t COMPREPLY < <(compgen -W "$shells" -- "$cur") ;;
  esac
}
complete -F _motley motley
)";

const char* bash_kind(CompletionKind kind) {
  switch (kind) {
    case CompletionKind::kAnything:
      return "''";
    case CompletionKind::kPath:
      return "path";
    case CompletionKind::kFolder:
      return "folder";
    case CompletionKind::kKey:
      return "key";
    case CompletionKind::kShell:
      return "shell";
  }
  return "''";
}

// The completions after one command, as a branch of `case $command`.
std::string bash_branch(const CommandSpec& spec) {
  std::string names;
  std::string values;
  for (const OptionSpec& option : options_with_help(spec)) {
    names += (names.empty() ? "--" : " --") + option.name;
    if (option.value.empty()) continue;
    const std::string letter = option.letter == 0 ? "" : fmt::format(" | -{}", option.letter);
    values += fmt::format("        --{}{}) kind={} ;;\n", option.name, letter,
                          bash_kind(completion_kind(option.value)));
  }
  return fmt::format(
      "    '{}')\n      case $before in\n{}        *) kind={} options='{}' ;;\n"
      "      esac\n      ;;\n",
      spec.name, values, bash_kind(operand_kind(spec)), names);
}

}  // namespace

std::string bash_completion(const CompletionTable& table) {
  std::string firsts;
  std::string families;
  for (const FirstWord& first : first_words(table.commands)) {
    firsts += first.word + " ";
    if (first.family.empty()) continue;
    std::string seconds;
    for (const CommandSpec* spec : first.family) {
      seconds += (seconds.empty() ? "" : " ") + second_word(*spec);
    }
    families += fmt::format(
        "    {})\n      ((at += 1))\n      command+=\" ${{COMP_WORDS[at]}}\"\n"
        "      ((COMP_CWORD != at)) || kind=words words='{}' command=''\n      ;;\n",
        first.word, seconds);
  }
  std::string branches;
  for (const CommandSpec& spec : table.commands) branches += bash_branch(spec);
  return fmt::format(
      "{}  local shells='{}' keys='{}'\n"
      "  if ((COMP_CWORD == at)); then\n    kind=words words='{}help'\n"
      "    [[ $cur != -* ]] || words='--help --version'\n    command=''\n  fi\n"
      "  case $command in\n{}  esac\n"
      "  # Of a command that is to be explained only the name is completed.\n"
      "  [[ ${{COMP_WORDS[1]}} != help ]] || command=''\n"
      "  case $command in\n{}  esac\n{}",
      kBashBegin, fmt::join(completed_shells(), " "), fmt::join(table.keys, " "), firsts, families,
      branches, kBashEnd);
}

}  // namespace motley

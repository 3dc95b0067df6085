#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/guide/completion.h"

namespace motley {
namespace {

constexpr std::string_view kFishBegin =
    R"(# Completion of motley in fish, as `motley completion fish` prints it.
function __motley_words --description 'The words between motley and the one that is written'
    set -l words (commandline -opc)
    set -e words[1]
    printf "%s\n" "$words"
end
function __motley_after --description 'Whether these words stand before it, and no others'
    test (__motley_words) = "$argv"
end
function __motley_in --description 'Whether these words stand before it first'
    string match -q -- "$argv *" (__motley_words)' '
end
complete -c motley -f
)";

std::string fish_quoted(const std::string& text) {
  std::string inside;
  for (const char c : text) {
    if (c == '\'' || c == '\\') inside += '\\';
    inside += c;
  }
  return "'" + inside + "'";
}

// The completion of an option's value or of an operand.
std::string fish_kind(CompletionKind kind, const CompletionTable& table) {
  switch (kind) {
    case CompletionKind::kAnything:
      return " -x";
    case CompletionKind::kPath:
      return " -r -F";
    case CompletionKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case CompletionKind::kKey:
      return fmt::format(" -x -a '{}='", fmt::join(table.keys, "= "));
    case CompletionKind::kShell:
      return fmt::format(" -x -a '{}'", fmt::join(completed_shells(), " "));
  }
  return "";
}

std::string fish_word(const std::string& after,
                      const std::string& word,
                      const std::string& summary) {
  return fmt::format("complete -c motley -n '__motley_after{}' -a {} -d {}\n", after, word,
                     fish_quoted(summary));
}

}  // namespace

std::string fish_completion(const CompletionTable& table) {
  std::string text(kFishBegin);
  for (const FirstWord& first : first_words(table.commands)) {
    for (const std::string before : {"", " help"}) {
      text += fish_word(before, first.word, first.summary);
      for (const CommandSpec* spec : first.family) {
        text += fish_word(before + " " + first.word, second_word(*spec), spec->summary);
      }
    }
  }
  text += fish_word("", "help", "explain a command");
  for (const CommandSpec& spec : table.commands) {
    const std::string begin = fmt::format("complete -c motley -n '__motley_in {}'", spec.name);
    for (const OptionSpec& option : options_with_help(spec)) {
      const std::string letter = option.letter == 0 ? "" : fmt::format(" -s {}", option.letter);
      text +=
          fmt::format("{} -l {}{}{} -d {}\n", begin, option.name, letter,
                      option.value.empty() ? "" : fish_kind(completion_kind(option.value), table),
                      fish_quoted(option.help));
    }
    const CompletionKind kind = operand_kind(spec);
    if (kind == CompletionKind::kPath) text += begin + " -F\n";
    if (kind == CompletionKind::kShell) text += begin + fish_kind(kind, table) + "\n";
  }
  return text;
}

}  // namespace motley

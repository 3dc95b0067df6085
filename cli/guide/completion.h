// Shell completion for motley: scripts generated from the command tables, so that they offer
// exactly the commands, options and keys of the help.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"

namespace motley {

// The supported shells: "bash", "zsh", "fish".
[[nodiscard]] const std::vector<std::string>& completed_shells();

// The completions.
struct CompletionTable {
  std::vector<CommandSpec> commands;  // in the order of the help
  std::vector<std::string> keys;      // configuration keys, for KEY=VALUE
};

// The script for one of these shells. It does not call motley.
[[nodiscard]] std::string completion_script(const std::string& shell, const CompletionTable& table);

[[nodiscard]] std::string bash_completion(const CompletionTable& table);
[[nodiscard]] std::string zsh_completion(const CompletionTable& table);
[[nodiscard]] std::string fish_completion(const CompletionTable& table);

// The kind of a value or operand, derived from its name in the help.
enum class CompletionKind { kAnything, kPath, kFolder, kKey, kShell };
[[nodiscard]] CompletionKind completion_kind(std::string_view name);

// The kind of the last operand, which those before it share; kAnything without operands.
[[nodiscard]] CompletionKind operand_kind(const CommandSpec& spec);

// The first words of commands in order, each once; for a word that begins several commands ("ckpt")
// with all second words.
struct FirstWord {
  std::string word;
  std::string summary;                     // of the command, or the list of second words
  std::vector<const CommandSpec*> family;  // the commands of two words that begin with it
};

[[nodiscard]] std::vector<FirstWord> first_words(const std::vector<CommandSpec>& commands);

// The second word of a command of two words.
[[nodiscard]] std::string second_word(const CommandSpec& spec);

}  // namespace motley

// What shells need to complete a command line of motley: scripts made from the table of commands,
// so that they know every command, option and key that the help does, and nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/arguments.h"

namespace motley {

// The shells that there is a script for: "bash", "zsh", "fish".
[[nodiscard]] const std::vector<std::string>& completed_shells();

// What is there to complete.
struct CompletionTable {
  std::vector<CommandSpec> commands;  // in the order of the help
  std::vector<std::string> keys;      // of configurations, for KEY=VALUE
};

// The script for one of these shells. It asks nothing of motley when it runs.
[[nodiscard]] std::string completion_script(const std::string& shell, const CompletionTable& table);

[[nodiscard]] std::string bash_completion(const CompletionTable& table);
[[nodiscard]] std::string zsh_completion(const CompletionTable& table);
[[nodiscard]] std::string fish_completion(const CompletionTable& table);

// What may stand for a value or an operand, told by its name in the help.
enum class CompletionKind { kAnything, kPath, kFolder, kKey, kShell };
[[nodiscard]] CompletionKind completion_kind(std::string_view name);

// Of the last operand, which those before it are like; kAnything where there is none.
[[nodiscard]] CompletionKind operand_kind(const CommandSpec& spec);

// The first words of commands in their order, each once, and of those that begin several commands
// ("ckpt") all second words.
struct FirstWord {
  std::string word;
  std::string summary;                     // of the command, or the second words of several
  std::vector<const CommandSpec*> family;  // commands of two words that begin with it
};

[[nodiscard]] std::vector<FirstWord> first_words(const std::vector<CommandSpec>& commands);

// The second word of a command of two.
[[nodiscard]] std::string second_word(const CommandSpec& spec);

}  // namespace motley

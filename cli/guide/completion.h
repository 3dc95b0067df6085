// Shell completion for motley: `motley __complete -- WORDS…` finds the candidates in the command
// tables, so that they are exactly the commands, options and keys of the help; the shells' scripts
// only show them.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "run_config/config_io.h"

namespace motley {

// What may stand at the place of the last word.
enum class CompletionKind {
  kWords,    // the candidates; also if there are none
  kKeys,     // the candidates, each to be continued without a space
  kFiles,    // files and folders
  kFolders,  // folders
};

struct CompletedWord {
  std::string word;
  std::string description;  // one line
};

struct Completions {
  CompletionKind kind = CompletionKind::kWords;
  std::string prefix;  // of the last word, in front of each candidate: "--cluster=", or empty
  std::vector<CompletedWord> candidates;
};

// The completions of the last of the words after "motley", whatever it begins with, except that
// options are offered only after '-'. A shell may split words at '=' and ':', as bash does.
[[nodiscard]] Completions complete(const std::vector<std::string>& words,
                                   const std::vector<CommandSpec>& commands,
                                   const std::vector<ConfigKey>& keys);

// Its form for the scripts: the kind ("words", "keys", "files" or "folders"), the prefix, and a
// line "WORD<TAB>DESCRIPTION" for each candidate.
[[nodiscard]] std::string completion_text(const Completions& completion);

// A script by which a shell calls `motley __complete`.
struct CompletionScript {
  std::string shell;  // "bash"
  std::string text;
};

[[nodiscard]] const std::vector<CompletionScript>& completion_scripts();

}  // namespace motley

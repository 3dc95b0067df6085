#include "cli/guide/completion.h"

namespace motley {
namespace {

constexpr const char* kBash =
    R"(# Completion of motley in bash, as `motley completion bash` prints it.
_motley() {
  local IFS=$'\n' lines=() prefix last=${COMP_WORDS[COMP_CWORD]}
  mapfile -t lines < <("${1/#\~/$HOME}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  lines=("${lines[@]%%$'\t'*}")
  prefix=${lines[1]}
  # bash splits words at '=': what precedes it is no part of the last word.
  [[ $prefix != *= || $COMP_WORDBREAKS != *=* ]] || prefix=''
  [[ $last != = ]] || last=''
  last=${last#"$prefix"}
  COMPREPLY=()
  case ${lines[0]} in
    files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -P "$prefix" -f -- "$last") ;;
    folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -P "$prefix" -d -- "$last") ;;
    *)
      [[ ${lines[0]} != keys ]] || compopt -o nospace
      mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "${lines[*]:2}" -- "$last")
      ;;
  esac
}
complete -F _motley motley
)";

constexpr const char* kZsh =
    R"(#compdef motley
# Completion of motley in zsh, as `motley completion zsh` prints it.
_motley() {
  local line text program=${(Q)words[1]}
  local -a lines rows
  lines=("${(@f)$("${program/#\~/$HOME}" __complete -- "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  compset -p $#lines[2]
  for line in "${(@)lines[3,-1]}"; do
    text=${line#*$'\t'}
    rows+=("${${line%%$'\t'*}//:/\\:}${text:+:$text}")
  done
  case $lines[1] in
    (files) _files ;;
    (folders) _files -/ ;;
    (keys) _describe key rows -S '' ;;
    (*) _describe word rows ;;
  esac
}
# Not while it is only read, as by source <(motley completion zsh).
if [[ $funcstack[1] == _motley ]]; then
  _motley "$@"
else
  compdef _motley motley
fi
)";

constexpr const char* kFish =
    R"(# Completion of motley in fish, as `motley completion fish` prints it.
function __motley_complete --description 'Sets __motley_candidates; fails for files'
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -e words[1]
    set -g __motley_candidates
    command -q $program; or return 0
    set -l lines ($program __complete -- $words "$last" 2>/dev/null)
    test (count $lines) -ge 2; or return 0
    set -l prefix $lines[2]
    switch $lines[1]
        case files
            return 1
        case folders
            set -l path (string sub -s (math 1 + (string length -- "$prefix")) -- "$last")
            set __motley_candidates "$prefix"(__fish_complete_directories "$path")
        case '*'
            set -e lines[1 2]
            set __motley_candidates "$prefix"$lines
    end
end
complete -c motley -n __motley_complete -f -a '$__motley_candidates'
)";

}  // namespace

const std::vector<CompletionScript>& completion_scripts() {
  static const std::vector<CompletionScript> scripts = {
      {"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
  return scripts;
}

}  // namespace motley

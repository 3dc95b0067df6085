// What a worker says on standard error when it ends because it heard nothing of its launcher; the
// launcher, should it wake up, knows the end by these words and the exit status 143. An event would
// not do: nobody has read the worker's events meanwhile, so that their pipe may be full.
#pragma once

namespace motley {

inline constexpr const char* kLapsedWords = "nothing was heard of the launcher";

}  // namespace motley

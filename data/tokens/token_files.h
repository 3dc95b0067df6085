// The files of data.kind = "tokens": one file, several by a pattern, or the shards of a folder.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "data/files/left_out.h"

namespace motley {

struct TokenFiles {
  std::vector<std::filesystem::path> files;     // to train on, in the byte order of their names
  std::vector<std::filesystem::path> held_out;  // named as held-out data; not in `files`
  LeftOut left_out;                             // others that are probably not meant, by name
};

// `path` names a file; the files that match a pattern with * and ? in its last component; or a
// folder with .bin or .npy files, in it or, if it has none, in its sub-folder `train`. Megatron's
// prefix, without .bin, names the file too. Files with a word such as `val` or `test` in their
// names are held out, if others remain; if some have the word `train`, only these are trained on.
// kData if there is none, or files of both suffixes; a missing file is not checked.
[[nodiscard]] Result<TokenFiles> find_token_files(const std::filesystem::path& path);

// The value of data.holdout_path for held-out files: a pattern of all of them, or else the first.
// REQUIRES: at least one, all in one folder.
[[nodiscard]] std::filesystem::path pattern_of(const std::vector<std::filesystem::path>& files);

}  // namespace motley

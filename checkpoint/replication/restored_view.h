// The restored view of a distributed checkpoint on one machine: `.step-N.LAUNCH.restored`, a folder
// that CheckpointReader opens. It contains the files with tensors that this machine needs: links to
// local files, and files received from other machines, with holes in place of tensors that are not
// needed here.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

// A file and its tensors that this machine needs.
struct RequiredFile {
  WrittenFile file;
  std::set<std::string> tensors;

  [[nodiscard]] bool is_all() const { return tensors.size() == file.tensor_hashes.size(); }
};

// The files with these parameters, their moments and their error-feedback residuals.
[[nodiscard]] std::vector<RequiredFile> required_files(const Manifest& manifest,
                                                       const std::set<std::string>& parameters);

[[nodiscard]] std::filesystem::path restored_view_folder(const SaveLocation& location);

// Creates an empty view; replaces that of an earlier attempt.
[[nodiscard]] Result<void> begin_restored_view(const SaveLocation& location);
// Adds a local file.
[[nodiscard]] Result<void> link_into_restored_view(const SaveLocation& location,
                                                   const std::filesystem::path& file);
// Removes the view, if there is one.
[[nodiscard]] Result<void> discard_restored_view(const SaveLocation& location);
// Whether the committed part of the step can be read instead: it has these files, as described, and
// the same state. The caller has verified their content.
[[nodiscard]] bool is_in_shard_set(const SaveLocation& location, const Manifest& described);
// Writes the view's manifest, which makes it readable.
[[nodiscard]] Result<void> end_restored_view(const SaveLocation& location,
                                             Manifest manifest,
                                             const std::vector<RequiredFile>& needs);

}  // namespace motley

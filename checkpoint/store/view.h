// What a machine reads of a checkpoint that lies scattered: `.step-N.LAUNCH.restored`, a folder
// that CheckpointReader opens. It has the files that hold something this machine needs: links to
// those that lie here, and those that came from other machines, with holes where a tensor is not
// needed here.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

// A file, and the tensors in it that somebody needs.
struct FileNeed {
  WrittenFile file;
  std::set<std::string> tensors;

  [[nodiscard]] bool is_all() const { return tensors.size() == file.tensor_hashes.size(); }
};

// Who holds these parameters needs them, what the optimizer keeps of them, and what sums still owe
// them.
[[nodiscard]] std::vector<FileNeed> needs_of(const Manifest& manifest,
                                             const std::set<std::string>& parameters);

[[nodiscard]] std::filesystem::path view_folder(const SavePlace& place);

// An empty one, in the place of what an earlier attempt has left.
[[nodiscard]] Result<void> begin_view(const SavePlace& place);
// Takes a file of this machine in.
[[nodiscard]] Result<void> link_into_view(const SavePlace& place,
                                          const std::filesystem::path& file);
// Removes what there is of it.
[[nodiscard]] Result<void> discard_view(const SavePlace& place);
// Whether the committed part of the step can be read in its place: it has these files, as they are
// described, and tells of the same state. That they are whole was found before.
[[nodiscard]] bool is_in_part(const SavePlace& place, const Manifest& described);
// Names what lies in it; then it can be read.
[[nodiscard]] Result<void> end_view(const SavePlace& place,
                                    Manifest manifest,
                                    const std::vector<FileNeed>& needs);

}  // namespace motley

// Folders in the state in which a power cut has left a disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "tests/checkpoint/fixture.h"
#include "tests/support/disk_model.h"

namespace motley::testing {

// A folder that is set to one disk state after another.
class DiskCopy {
 public:
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

  void show(const DiskTree& tree);
  // Call after other code has changed the folder.
  void forget();

 private:
  TempFolder folder_;
  DiskTree shown_;
};

[[nodiscard]] DiskTree read_tree(const std::filesystem::path& folder);

// A hash of a state together with `more`.
[[nodiscard]] std::size_t fingerprint(const DiskTree& tree, const std::string& more);

}  // namespace motley::testing

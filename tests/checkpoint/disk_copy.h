// Folders that look as a cut of the power has left a disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "tests/checkpoint/fixture.h"
#include "tests/support/disk_model.h"

namespace motley::testing {

// A folder that is made into one state of a disk after the other.
class DiskCopy {
 public:
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

  void show(const DiskTree& tree);
  // After others have changed it.
  void forget();

 private:
  TempFolder folder_;
  DiskTree shown_;
};

[[nodiscard]] DiskTree read_tree(const std::filesystem::path& folder);

// One number for a state, and for what else tells it from others.
[[nodiscard]] std::size_t fingerprint(const DiskTree& tree, const std::string& more);

}  // namespace motley::testing

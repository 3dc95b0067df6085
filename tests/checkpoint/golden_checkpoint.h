// The checkpoints of every version that is read: of the same two steps of one run, each written by
// the last program that wrote its version (make_golden.py). What their tensors must be stands
// beside them.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace motley::testing {

struct GoldenCheckpoint {
  int version = 0;
  std::map<std::string, std::string> hashes;  // of the values, by name as this version has it

  [[nodiscard]] std::filesystem::path folder() const {
    return std::filesystem::path(MOTLEY_GOLDEN) / ("version-" + std::to_string(version)) /
           "step-000002";
  }
};

// tensors.txt has the names of version 2. In version 1 the holders 0 and 1 are the ranks 1 and 2.
inline GoldenCheckpoint golden_checkpoint(int version) {
  GoldenCheckpoint golden{version, {}};
  std::ifstream list(std::filesystem::path(MOTLEY_GOLDEN) / "tensors.txt");
  const std::string residual = "residual.";
  for (std::string hash, name; list >> hash >> name;) {
    if (version == 1 && name.starts_with(residual)) ++name[residual.size()];
    golden.hashes.emplace(name, hash);
  }
  return golden;
}

}  // namespace motley::testing

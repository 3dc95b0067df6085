// Golden checkpoints of every readable version: the same two steps of one run, each written by the
// last program that wrote its version (make_golden.py), and the expected hashes of their tensors.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace motley::testing {

struct GoldenCheckpoint {
  int version = 0;
  std::map<std::string, std::string> hashes;  // of the values, by the tensor names of this version

  [[nodiscard]] std::filesystem::path folder() const {
    return std::filesystem::path(MOTLEY_GOLDEN) / ("version-" + std::to_string(version)) /
           "step-000002";
  }
};

// tensors.txt has the names of version 2. In version 1 the members 0 and 1 are the ranks 1 and 2.
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

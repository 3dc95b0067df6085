// Random changes to a valid package.json that leave most of it valid.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/package_laws.h"
#include "tests/support/damage.h"

namespace motley {

// Fragments that are meaningful in a package.
inline std::vector<std::string> fragments_of_packages() {
  std::vector<std::string> fragments = fragments_of_text();
  for (const char* text :
       {"\"aten::add_.Tensor\"", "\"aten::empty.memory_format\"", "\"aten::mm\"",
        "\"aten::native_batch_norm\"", "{\"value\": 1}", "{\"value\": -1}", "{\"values\": [null]}",
        "{\"batch\": [0, 9223372036854775807]}", "[1, true, 2.5]", "{\"float\": \"nan\"}",
        "{\"type\": \"float64\"}", "\"parameter:0\"", "\"saved:19999\"", "\"target:0\"", "1048576",
        "\"shape\": [1099511627776, 2]", "\"results\": 20000", "\"tied\": true"}) {
    fragments.emplace_back(text);
  }
  return fragments;
}

// Generates variants of a package.json, each with one number or string replaced by another one of
// it or by a meaningful fragment.
class PackageChanges {
 public:
  explicit PackageChanges(std::string right = right_package())
      : right_(std::move(right)), others_(fragments_of_packages()) {
    for (std::size_t at = 0; at < right_.size();) {
      const std::size_t end = std::min(right_.find_first_of(",:[]{} \n", at), right_.size());
      if (end > at) words_.emplace_back(at, end - at);
      at = end + 1;
    }
    for (const auto& [begin, length] : words_) others_.push_back(right_.substr(begin, length));
  }

  [[nodiscard]] std::string next() {
    std::string text = right_;
    const auto& [begin, length] = words_[random_() % words_.size()];
    return text.replace(begin, length, others_[random_() % others_.size()]);
  }

 private:
  std::string right_;
  std::vector<std::pair<std::size_t, std::size_t>> words_;  // {begin, length} of numbers and
                                                            // strings
  std::vector<std::string> others_;
  std::mt19937_64 random_{20261121};
};

}  // namespace motley

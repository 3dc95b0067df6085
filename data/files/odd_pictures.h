// OddPictures: the pictures of a folder that cannot be decoded, or only perhaps as they were.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

// Counts them, and names the first ten of each kind in the order of reading.
class OddPictures {
 public:
  // `picture` is relative to the folder.
  void add_damaged(const std::filesystem::path& picture, const std::string& cause);
  void add_with_stray_bytes(const std::filesystem::path& picture);

  [[nodiscard]] bool has_damaged() const { return damaged_.count > 0; }

  // The error for a folder of `pictures` with damaged ones. kData.
  [[nodiscard]] Error refusal(std::uint64_t pictures, const std::filesystem::path& folder) const;

  // Warnings, one line each, about pictures that were left out or may be damaged.
  [[nodiscard]] std::vector<std::string> notes(std::uint64_t pictures,
                                               const std::filesystem::path& folder) const;

 private:
  struct List {
    std::uint64_t count = 0;
    std::vector<std::string> first;

    void add(std::string text);
    [[nodiscard]] std::string text() const;
  };

  List damaged_;  // "PATH: CAUSE"
  List with_stray_bytes_;
};

}  // namespace motley

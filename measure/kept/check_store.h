// CheckStore: which layers of which packages were found to compute on this machine's devices as
// their references say (models/package/reference/reference.h), kept from one start to the next
// beside the profiles. Format: docs/formats/kept-profile.md.
//
// One file for each set of circumstances that decide what is computed. A file that is damaged, of
// another version or of other circumstances counts as none. Several processes may find and keep at
// the same time: a file is whole or absent, and the last one that is written counts.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "measure/kept/profile_store.h"

namespace motley {

struct CheckKey {
  std::string package;    // SHA-256 of package.json, which has that of the weights
  std::string reference;  // hash of its references
  std::string device;
  std::string processor;
  int threads = 1;
  std::vector<std::string> libraries;
  std::string numbers;  // that products are computed in

  friend bool operator==(const CheckKey&, const CheckKey&) = default;
};

// `package`: SHA-256; the rest of the circumstances is as of the profile.
[[nodiscard]] CheckKey check_key(const ProfileKey& profile,
                                 std::string package,
                                 std::string reference);

class CheckStore {
 public:
  // As of ProfileStore.
  explicit CheckStore(std::filesystem::path folder);

  // The signatures of the layers that were right; none where nothing is kept.
  [[nodiscard]] std::set<std::string> find(const CheckKey& key) const;

  // Replaces what is kept under the key. kCorrupt when it cannot be written.
  [[nodiscard]] Result<void> keep(const CheckKey& key, const std::set<std::string>& layers) const;

 private:
  [[nodiscard]] std::filesystem::path path_of(const CheckKey& key) const;

  std::filesystem::path folder_;
};

// One file's text, and back. kCorrupt for what is not such a text.
[[nodiscard]] Json kept_check_to_json(const CheckKey& key, const std::set<std::string>& layers);
[[nodiscard]] Result<std::set<std::string>> parse_kept_check(std::string_view text,
                                                             const CheckKey& key,
                                                             const std::string& source);

}  // namespace motley

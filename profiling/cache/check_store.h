// CheckStore: a persistent record of the package layers that compute on this machine's devices as
// their references say (models/package/reference/reference.h), stored beside the profiles. Format:
// docs/formats/kept-profile.md.
//
// One file for each set of conditions that determine the results. A file that is damaged, of
// another version or for other conditions is ignored. Several processes may read and write at the
// same time: a file is complete or absent, and the last write wins.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "profiling/cache/profile_store.h"

namespace motley {

struct CheckKey {
  std::string package;    // SHA-256 of package.json, which contains that of the weights
  std::string reference;  // hash of the package's references
  std::string device;
  std::string processor;
  int threads = 1;
  std::vector<std::string> libraries;
  std::string compute_dtype;  // dtype of matrix products

  friend bool operator==(const CheckKey&, const CheckKey&) = default;
};

// `package`: SHA-256; the other conditions are those of the profile.
[[nodiscard]] CheckKey check_key(const ProfileKey& profile,
                                 std::string package,
                                 std::string reference);

class CheckStore {
 public:
  // As in ProfileStore.
  explicit CheckStore(std::filesystem::path folder);

  // The signatures of the layers that passed; empty without a record.
  [[nodiscard]] std::set<std::string> find(const CheckKey& key) const;

  // Replaces the record under the key. kCorrupt if it cannot be written.
  [[nodiscard]] Result<void> put(const CheckKey& key, const std::set<std::string>& layers) const;

 private:
  [[nodiscard]] std::filesystem::path path_of(const CheckKey& key) const;

  std::filesystem::path folder_;
};

// One file's text, and its parser. kCorrupt for an invalid text.
[[nodiscard]] Json stored_check_to_json(const CheckKey& key, const std::set<std::string>& layers);
[[nodiscard]] Result<std::set<std::string>> parse_stored_check(std::string_view text,
                                                               const CheckKey& key,
                                                               const std::string& source);

}  // namespace motley

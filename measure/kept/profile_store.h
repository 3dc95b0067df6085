// ProfileStore: the profiles of this machine's devices that are kept from one start to the next.
// Format: docs/formats/kept-profile.md.
//
// One file for each set of circumstances that decide how long work takes. What lies there is read
// as untrusted: a file that is damaged, of another version or of other circumstances counts as
// none. Several processes may find and keep at the same time: a file is whole or absent, and the
// last one that is written counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "plan/profile.h"

namespace motley {

// All that a profile depends on but the kinds of layers and the codecs, which stand in it by name,
// and how much of it was asked for. Two profiles whose keys are equal are of the same thing.
struct ProfileKey {
  std::string device;
  std::string processor;               // model
  int threads = 1;                     // that compute
  double cores = 0;                    // that the process may use: fewer under a quota
  std::vector<std::string> libraries;  // each with its version; our own kernels are one
  std::string numbers;                 // that products are computed in: fp32, bf16, fp16
  std::string optimizer;
  std::string transport;             // that carried the values of which codecs were timed
  std::int64_t elsewhere_bytes = 0;  // what filled the caches between two runs of a layer

  friend bool operator==(const ProfileKey&, const ProfileKey&) = default;
};

struct KeptProfile {
  double seconds = 0;  // that measuring was given
  // Micro-batch sizes that were asked for; large ones may be left out in the profile.
  int smallest = 1;
  int largest = 1;
  DeviceProfile device;  // times in processor seconds; machine and memory_bytes say nothing
};

// Whether the profile tells as much as measuring these sizes, ascending, for so long would: times
// at other sizes lie on lines between those that it has. One that can only be checked at sizes
// beyond them, which may not fit the machine, does not.
[[nodiscard]] bool serves(const KeptProfile& profile,
                          const std::vector<int>& sizes,
                          double seconds);

// The folder that the two environment variables mean: "motley/profiles" below the absolute path of
// the first or below ".cache" of the second. Empty = nothing is kept. nullptr = not set.
[[nodiscard]] std::filesystem::path profile_folder(const char* xdg_cache_home, const char* home);

class ProfileStore {
 public:
  // An empty folder keeps nothing; one that is missing is made when there is something to keep.
  explicit ProfileStore(std::filesystem::path folder);

  // Whether there is a folder at all.
  [[nodiscard]] bool keeps() const { return !folder_.empty(); }

  struct Found {
    std::optional<KeptProfile> profile;
    std::string trouble;  // why a file that is there does not count; "" = none
  };

  [[nodiscard]] Found find(const ProfileKey& key) const;

  // Replaces what is kept under the key, and removes the files that were not written for longest
  // where they are too many. kCorrupt when it cannot be written.
  [[nodiscard]] Result<void> keep(const ProfileKey& key, const KeptProfile& profile) const;

  [[nodiscard]] std::filesystem::path path_of(const ProfileKey& key) const;

  // Everything here, of whatever age.
  static constexpr std::size_t kFilesMax = 64;

 private:
  std::filesystem::path folder_;
};

// One file's text, and back. kCorrupt for what is not such a text.
[[nodiscard]] Json kept_profile_to_json(const ProfileKey& key, const KeptProfile& profile);
[[nodiscard]] Result<KeptProfile> parse_kept_profile(std::string_view text,
                                                     const ProfileKey& key,
                                                     const std::string& source);

}  // namespace motley

// ProfileStore: a persistent cache of the profiles of this machine's devices. Format:
// docs/formats/kept-profile.md.
//
// One file for each set of conditions that determine the measured times. Contents are untrusted: a
// file that is damaged, of another version or for other conditions is ignored. Several processes
// may read and write at the same time: a file is complete or absent, and the last write wins.
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

// Everything that a profile depends on, except the kinds of layers and the codecs, which it
// contains by name, and the requested extent. Profiles with equal keys describe the same
// conditions.
struct ProfileKey {
  std::string device;
  std::string processor;               // model
  int threads = 1;                     // compute threads
  double cores = 0;                    // usable by the process: fewer under a quota
  std::vector<std::string> libraries;  // each with its version; includes our own kernels
  std::string compute_dtype;           // dtype of matrix products: fp32, bf16, fp16
  std::string optimizer;
  std::string transport;             // used for timing the codecs
  std::int64_t elsewhere_bytes = 0;  // size of the cache eviction between two runs of a layer

  friend bool operator==(const ProfileKey&, const ProfileKey&) = default;
};

struct StoredProfile {
  double seconds = 0;  // the time budget of the measurement
  // Requested micro-batch sizes; large ones may be missing in the profile.
  int smallest = 1;
  int largest = 1;
  DeviceProfile device;  // times in processor seconds; machine and memory_bytes are unused
};

// Whether the profile is as informative as a measurement of these sizes, ascending, with this
// budget: times at other sizes are interpolated from those in it. False if it could only be checked
// at sizes beyond the requested ones, which may not fit into memory.
[[nodiscard]] bool serves(const StoredProfile& profile,
                          const std::vector<int>& sizes,
                          double seconds);

// The folder according to the two environment variables: "motley/profiles" below the absolute path
// in the first, or below ".cache" in the second. Empty = nothing is stored. nullptr = not set.
[[nodiscard]] std::filesystem::path profile_folder(const char* xdg_cache_home, const char* home);

class ProfileStore {
 public:
  // With an empty folder nothing is stored; a missing one is created on the first write.
  explicit ProfileStore(std::filesystem::path folder);

  // Whether there is a folder.
  [[nodiscard]] bool keeps() const { return !folder_.empty(); }

  struct Found {
    std::optional<StoredProfile> profile;
    std::string problem;  // the reason why an existing file is ignored; "" = none
  };

  [[nodiscard]] Found find(const ProfileKey& key) const;

  // Replaces the profile under the key, and removes the files written longest ago if there are too
  // many. kCorrupt if it cannot be written.
  [[nodiscard]] Result<void> put(const ProfileKey& key, const StoredProfile& profile) const;

  [[nodiscard]] std::filesystem::path path_of(const ProfileKey& key) const;

  // All files in the folder, of any age.
  static constexpr std::size_t kFilesMax = 64;

 private:
  std::filesystem::path folder_;
};

// One file's text, and its parser. kCorrupt for an invalid text.
[[nodiscard]] Json stored_profile_to_json(const ProfileKey& key, const StoredProfile& profile);
[[nodiscard]] Result<StoredProfile> parse_stored_profile(std::string_view text,
                                                         const ProfileKey& key,
                                                         const std::string& source);

}  // namespace motley

#include "profiling/cache/profile_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/json/json_fields.h"
#include "base/system/files.h"
#include "profiling/cache/stored_files.h"

namespace motley {
namespace {

constexpr const char* kStoredFormat = "motley.kept-profile";
constexpr int kStoredVersion = 4;
constexpr std::uint64_t kKeptBytesMax = std::uint64_t{4} << 20;
constexpr double kKeptSecondsMax = 1e6;
constexpr std::int64_t kStoredSizeMax = 1 << 24;
constexpr const char* kExtension = ".json";

Json key_to_json(const ProfileKey& key) {
  return {{"device", key.device},
          {"processor", key.processor},
          {"threads", key.threads},
          {"cores", key.cores},
          {"libraries", key.libraries},
          {"numbers", key.compute_dtype},
          {"optimizer", key.optimizer},
          {"transport", key.transport},
          {"elsewhere_bytes", key.elsewhere_bytes}};
}

}  // namespace

bool serves(const StoredProfile& profile, const std::vector<int>& sizes, double seconds) {
  const auto begins_beyond = [&](const auto& layer) {
    return layer.second.front().micro_batch > sizes.back();
  };
  return profile.seconds >= seconds && profile.smallest <= sizes.front() &&
         sizes.back() <= profile.largest &&
         std::ranges::none_of(profile.device.layers, begins_beyond);
}

std::filesystem::path profile_folder(const char* xdg_cache_home, const char* home) {
  const std::filesystem::path cache = xdg_cache_home == nullptr ? "" : xdg_cache_home;
  // The XDG standard requires that relative paths are ignored.
  if (cache.is_absolute()) return cache / "motley" / "profiles";
  const std::filesystem::path own = home == nullptr ? "" : home;
  return own.is_absolute() ? own / ".cache" / "motley" / "profiles" : std::filesystem::path();
}

Json stored_profile_to_json(const ProfileKey& key, const StoredProfile& profile) {
  return {{"format", kStoredFormat},
          {"version", kStoredVersion},
          {"key", key_to_json(key)},
          {"seconds", profile.seconds},
          {"smallest", profile.smallest},
          {"largest", profile.largest},
          {"profile", profile_to_json(Profile{{profile.device}})}};
}

Result<StoredProfile> parse_stored_profile(std::string_view text,
                                           const ProfileKey& key,
                                           const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  MOTLEY_TRY(fields.header(kStoredFormat, kStoredVersion));
  StoredProfile stored;
  MOTLEY_ASSIGN(stored.seconds, fields.quantity("seconds", kKeptSecondsMax));
  MOTLEY_ASSIGN(const std::int64_t smallest, fields.integer("smallest", 1, kStoredSizeMax));
  MOTLEY_ASSIGN(const std::int64_t largest, fields.integer("largest", smallest, kStoredSizeMax));
  stored.smallest = static_cast<int>(smallest);
  stored.largest = static_cast<int>(largest);
  MOTLEY_TRY(fields.member("key"));
  if (json["key"] != key_to_json(key)) {
    return fields.bad("key", "it is of another device, library or model");
  }
  MOTLEY_TRY(fields.member("profile"));
  MOTLEY_ASSIGN(Profile profile, profile_from_json(json["profile"], JsonSource(source)));
  if (profile.devices.size() != 1)
    return fields.bad("profile", "it is not a profile of one device");
  stored.device = std::move(profile.devices.front());
  if (stored.device.device != key.device || stored.device.threads != key.threads ||
      stored.device.precision != key.compute_dtype) {
    return fields.bad("profile", "it has another device, number of threads or dtype than its key");
  }
  return stored;
}

ProfileStore::ProfileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

std::filesystem::path ProfileStore::path_of(const ProfileKey& key) const {
  return folder_ / fmt::format("{:016x}{}", hash64(key_to_json(key).dump()), kExtension);
}

ProfileStore::Found ProfileStore::find(const ProfileKey& key) const {
  if (folder_.empty()) return {};
  const std::filesystem::path path = path_of(key);
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return {};
  // Opening a pipe would block until another process writes to it.
  if (!std::filesystem::is_regular_file(path, code)) {
    return {std::nullopt, fmt::format("{} is not a file", path.string())};
  }
  const auto text = read_file(path, kKeptBytesMax);
  if (!text.ok()) return {std::nullopt, text.error().what + ": " + text.error().cause};
  auto stored = parse_stored_profile(*text, key, path.string());
  if (!stored.ok()) return {std::nullopt, stored.error().what + ": " + stored.error().cause};
  return {std::move(stored).value(), ""};
}

Result<void> ProfileStore::put(const ProfileKey& key, const StoredProfile& profile) const {
  if (folder_.empty()) return {};
  return store_file(path_of(key), stored_profile_to_json(key, profile).dump(1) + "\n", kFilesMax);
}

}  // namespace motley

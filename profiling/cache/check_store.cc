#include "profiling/cache/check_store.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/json/json_fields.h"
#include "base/system/files.h"
#include "profiling/cache/stored_files.h"

namespace motley {
namespace {

constexpr const char* kCheckFormat = "motley.kept-check";
constexpr int kCheckVersion = 1;
constexpr std::uint64_t kCheckBytesMax = std::uint64_t{1} << 20;
constexpr std::size_t kCheckedLayersMax = 10'000;
constexpr std::size_t kCheckFilesMax = 256;

Json check_key_to_json(const CheckKey& key) {
  return {{"package", key.package},      {"reference", key.reference}, {"device", key.device},
          {"processor", key.processor},  {"threads", key.threads},     {"libraries", key.libraries},
          {"numbers", key.compute_dtype}};
}

}  // namespace

CheckKey check_key(const ProfileKey& profile, std::string package, std::string reference) {
  return {std::move(package), std::move(reference), profile.device,       profile.processor,
          profile.threads,    profile.libraries,    profile.compute_dtype};
}

Json stored_check_to_json(const CheckKey& key, const std::set<std::string>& layers) {
  return {{"format", kCheckFormat},
          {"version", kCheckVersion},
          {"key", check_key_to_json(key)},
          {"layers", layers}};
}

Result<std::set<std::string>> parse_stored_check(std::string_view text,
                                                 const CheckKey& key,
                                                 const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  MOTLEY_TRY(fields.header(kCheckFormat, kCheckVersion));
  MOTLEY_TRY(fields.member("key"));
  if (json["key"] != check_key_to_json(key)) {
    return fields.bad("key", "it is of another device, library or package");
  }
  MOTLEY_ASSIGN(const auto layers, fields.texts("layers", kCheckedLayersMax));
  return std::set<std::string>(layers.begin(), layers.end());
}

// In a separate folder: the number of profiles has its own limit.
CheckStore::CheckStore(std::filesystem::path folder)
    : folder_(folder.empty() ? std::move(folder) : folder / "checks") {}

std::filesystem::path CheckStore::path_of(const CheckKey& key) const {
  return folder_ / fmt::format("{:016x}.json", hash64(check_key_to_json(key).dump()));
}

std::set<std::string> CheckStore::find(const CheckKey& key) const {
  if (folder_.empty()) return {};
  const std::filesystem::path path = path_of(key);
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return {};
  const auto text = read_file(path, kCheckBytesMax);
  if (!text.ok()) return {};
  auto stored = parse_stored_check(*text, key, path.string());
  return stored.ok() ? std::move(stored).value() : std::set<std::string>();
}

Result<void> CheckStore::put(const CheckKey& key, const std::set<std::string>& layers) const {
  if (folder_.empty()) return {};
  return store_file(path_of(key), stored_check_to_json(key, layers).dump() + "\n", kCheckFilesMax);
}

}  // namespace motley

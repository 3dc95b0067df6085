#include "checkpoint/replication/folder_id.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>

#include "base/hex.h"
#include "base/json.h"
#include "base/secret.h"
#include "base/system/files.h"

namespace motley {
namespace {

constexpr const char* kRunIdName = "run.json";
constexpr std::uint64_t kIdBytesMax = 4096;
constexpr std::size_t kIdBytes = 8;

}  // namespace

Result<std::string> make_folder_id() {
  MOTLEY_ASSIGN(const std::string random, make_secret());
  return to_hex(std::span(random).first(kIdBytes));
}

std::string folder_id_text(const std::string& format, const std::string& id) {
  return Json{{"format", format}, {"id", id}}.dump() + "\n";
}

Result<std::string> read_folder_id(const std::filesystem::path& file) {
  MOTLEY_ASSIGN(const std::string text, read_file(file, kIdBytesMax));
  if (const Result<Json> json = parse_json(text, file.string()); json.ok()) {
    Result<std::string> id = json_get<std::string>(*json, "id", file.string());
    const auto bytes = id.ok() ? from_hex(*id) : std::nullopt;
    if (bytes && bytes->size() == kIdBytes) return id;
  }
  return Error{ErrorCode::kCorrupt, fmt::format("invalid id of a folder, {}", file.string()),
               "its 'id' is not 16 hexadecimal digits",
               "remove that file; the next run creates one"};
}

Result<std::string> read_run_id(const std::filesystem::path& run_dir) {
  const std::filesystem::path file = run_dir / kRunIdName;
  MOTLEY_ASSIGN(const bool exists, path_exists(file));
  return exists ? read_folder_id(file) : std::string();
}

Result<void> write_run_id(const std::filesystem::path& run_dir, const std::string& id) {
  // An existing id needs no further space on a full disk.
  const Result<std::string> known = read_run_id(run_dir);
  if (known.ok() && *known == id) return {};
  return write_file_atomic(run_dir / kRunIdName, folder_id_text("motley.run", id));
}

}  // namespace motley

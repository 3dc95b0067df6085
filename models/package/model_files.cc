#include "models/package/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/json/json_fields.h"
#include "checkpoint/input_file.h"
#include "models/package/graph_reader.h"
#include "models/package/package_limits.h"
#include "models/package/sha256.h"

namespace motley {
namespace {

constexpr std::array<std::string_view, 6> kEndings = {".jinja", ".json",     ".model",
                                                      ".spm",   ".tiktoken", ".txt"};

// An export copies these files to a folder with its own weights and index. They must not replace
// either, and must not be programs.
bool is_model_file_name(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  constexpr std::size_t kNameMax = 100;
  if (name.empty() || name.size() > kNameMax) return false;
  if (name.find_first_not_of(kAllowed) != std::string_view::npos) return false;
  if (std::string_view("._-").find(name.front()) != std::string_view::npos) return false;
  if (name == "manifest.json" || name.ends_with(".index.json")) return false;
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

Error damaged_package(const std::filesystem::path& path, std::string cause) {
  return {ErrorCode::kCorrupt, fmt::format("damaged package, {}", path.string()), std::move(cause),
          "copy the package again, or export the model again"};
}

Result<std::string> read_sha256(const JsonFields& fields, const char* key) {
  constexpr std::size_t kDigits = 64;
  MOTLEY_ASSIGN(std::string hash, fields.text(key));
  if (hash.size() == kDigits && hash.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return hash;
  }
  return fields.bad(key, "64 lower-case hexadecimal digits were expected");
}

Result<std::vector<ModelFile>> read_model_files(const JsonFields& fields) {
  std::vector<ModelFile> files;
  if (!fields.has("files")) return files;
  MOTLEY_ASSIGN(const auto items, fields.items("files", 0, kModelFilesMax));
  std::set<std::string> names;
  for (const JsonFields& item : items) {
    MOTLEY_TRY(check_keys(item, {"name", "bytes", "sha256"}));
    ModelFile file;
    MOTLEY_ASSIGN(file.name, item.text("name"));
    if (!is_model_file_name(file.name)) {
      return item.bad("name",
                      fmt::format("'{}' is not the name of a model file", excerpt(file.name)));
    }
    if (!names.insert(file.name).second) return item.bad("name", "it is a duplicate");
    MOTLEY_ASSIGN(const std::int64_t bytes, item.integer("bytes", 0, kModelFileBytesMax));
    file.bytes = static_cast<std::uint64_t>(bytes);
    MOTLEY_ASSIGN(file.sha256, read_sha256(item, "sha256"));
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::map<std::string, std::string>> read_adapter_names(const JsonFields& fields) {
  std::map<std::string, std::string> names;
  if (!fields.has("adapter")) return names;
  MOTLEY_ASSIGN(const auto members, fields.members("adapter", kLayerTensorsMax));
  std::set<std::string> theirs;
  for (const auto& [name, other] : members) {
    if (!other.value().is_string()) return other.bad("a name was expected");
    std::string text = other.value().get<std::string>();
    if (text.empty() || text.size() > kPackageNameMax) return other.bad("a name was expected");
    if (!theirs.insert(text).second) return other.bad("it is a duplicate");
    names.emplace(name, std::move(text));
  }
  return names;
}

Result<std::string> read_model_file(const std::filesystem::path& folder,
                                    const ModelFile& file,
                                    ProgressCounter* work) {
  MOTLEY_ASSIGN(const InputFile input,
                InputFile::open(folder / kModelFilesFolder / file.name, work));
  if (input.bytes() != file.bytes) {
    return damaged_package(input.path(), fmt::format("it has {} bytes; package.json declares {}",
                                                     input.bytes(), file.bytes));
  }
  MOTLEY_ASSIGN(std::string text, input.read_all(kModelFileBytesMax));
  MOTLEY_ASSIGN(Sha256 hash, Sha256::make());
  hash.add(std::as_bytes(std::span(text)));
  const std::string hex = hash.hex();
  if (hex == file.sha256) return text;
  return damaged_package(
      input.path(), fmt::format("its SHA-256 is {}; package.json declares {}", hex, file.sha256));
}

}  // namespace motley

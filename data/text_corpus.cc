#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/system/files.h"
#include "data/corpus.h"
#include "data/files/packed_file.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// A folder is joined in memory. Larger texts must be one file, which is mapped.
constexpr std::uint64_t kFolderBytesMax = 4ULL << 30;

bool is_text(std::string_view bytes) {
  return bytes.find('\0') == std::string_view::npos;
}

// Folders without sources: hidden ones, builds and this program's runs, which are recognised by
// their launches (docs/formats/launches.md) wherever they are.
bool is_skipped_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  std::error_code ignored;
  return name.starts_with('.') || name.starts_with("build") || name.starts_with("runs") ||
         fs::is_directory(path / "launches", ignored);
}

bool is_wanted_file(const fs::path& path, const std::vector<std::string>& suffixes) {
  const std::string name = path.filename().string();
  return suffixes.empty() ||
         std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const std::string& suffix) { return name.ends_with(suffix); });
}

Error unreadable(const fs::path& path, const std::error_code& code) {
  Error error = file_error("read", path, code.value());
  error.code = ErrorCode::kData;
  return error;
}

// Regular files below `root`, ordered by the bytes of their paths; links are not followed.
Result<std::vector<fs::path>> list_files(const fs::path& root,
                                         const std::vector<std::string>& suffixes) {
  std::vector<fs::path> files;
  std::error_code code;
  auto it = fs::recursive_directory_iterator(root, code);
  for (; !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    const fs::file_status status = it->symlink_status(code);
    if (code) break;
    if (fs::is_directory(status) && is_skipped_folder(it->path())) it.disable_recursion_pending();
    if (fs::is_regular_file(status) && is_wanted_file(it->path(), suffixes)) {
      files.push_back(it->path());
    }
  }
  if (code) return unreadable(root, code);
  std::sort(files.begin(), files.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return files;
}

// The total size of the files, so that a folder that is too large is rejected before reading.
Result<std::uint64_t> total_bytes(const fs::path& root, const std::vector<fs::path>& files) {
  std::uint64_t total = 0;
  for (const fs::path& file : files) {
    std::error_code code;
    total += fs::file_size(file, code);
    if (code) return unreadable(file, code);
  }
  if (total > kFolderBytesMax) {
    return Error{ErrorCode::kData, fmt::format("too much text below {}", root.string()),
                 fmt::format("{} bytes; a folder is loaded into memory, and the limit is {}", total,
                             kFolderBytesMax),
                 "join it into one file, which is mapped instead of loaded, or set data.suffixes"};
  }
  return total;
}

Result<Corpus> join_folder(const fs::path& root, const std::vector<std::string>& suffixes) {
  MOTLEY_ASSIGN(const auto files, list_files(root, suffixes));
  MOTLEY_ASSIGN(const std::uint64_t total, total_bytes(root, files));
  std::string joined;
  joined.reserve(total + files.size());
  std::optional<Error> packed;  // the first of them
  for (const fs::path& file : files) {
    auto document = read_file(file, kFolderBytesMax);
    if (!document.ok()) {
      Error error = std::move(document).error();
      error.code = ErrorCode::kData;
      return error;
    }
    if (auto why = packed_text(*document, file)) {
      if (!packed) packed = std::move(why);
      continue;
    }
    if (document->empty() || !is_text(*document)) continue;
    if (!joined.empty()) joined += '\n';
    joined += *document;
  }
  if (joined.empty() && packed) {
    return with_context(*std::move(packed), fmt::format("no text below {}", root.string()));
  }
  if (joined.empty()) {
    return Error{ErrorCode::kData, fmt::format("no text below {}", root.string()),
                 suffixes.empty()
                     ? "no file without NUL bytes was found"
                     : fmt::format("no text file has the suffix {}", fmt::join(suffixes, ", ")),
                 "check data.path and data.suffixes"};
  }
  return Corpus(std::move(joined), 0, TokenType::kUint8);
}

}  // namespace

std::uint64_t text_folder_bytes(const DataConfig& data) {
  std::error_code code;
  if (!fs::is_directory(data.path, code)) return 0;
  const auto files = list_files(data.path, data.suffixes);
  if (!files.ok()) return 0;
  const auto bytes = total_bytes(data.path, *files);
  return bytes.ok() ? *bytes : 0;
}

Result<Corpus> open_text_corpus(const DataConfig& data) {
  const fs::path path = data.path;
  std::error_code code;
  if (fs::is_directory(path, code)) return join_folder(path, data.suffixes);
  MOTLEY_ASSIGN(auto file, MappedFile::open(path));
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  if (const auto packed = packed_text(bytes, path)) return *packed;
  if (!is_text(bytes)) {
    return Error{ErrorCode::kData, fmt::format("{} is not text", path.string()),
                 "it contains NUL bytes", "for a .bin of tokens set data.kind = \"tokens\""};
  }
  return Corpus(std::move(file), 0, TokenType::kUint8);
}

}  // namespace motley

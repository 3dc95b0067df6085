#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/system/files.h"
#include "data/corpus.h"
#include "data/files/left_out.h"
#include "data/files/packed_file.h"
#include "data/files/text_encoding.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// A folder is joined in memory. Larger texts must be one file, which is mapped.
constexpr std::uint64_t kFolderBytesMax = 4ULL << 30;
constexpr const char* kLeftoverReason = "as leftovers of an operating system";

std::string_view chars_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// Folders without sources: hidden ones, builds of CMake, and this program's runs, which are
// recognised by their launches (docs/formats/launches.md) wherever they are.
bool is_skipped_folder(const fs::path& path) {
  std::error_code ignored;
  const bool is_build =
      fs::exists(path / "CMakeCache.txt", ignored) && !fs::exists(path / "CMakeLists.txt", ignored);
  return path.filename().native().starts_with('.') || is_build ||
         fs::is_directory(path / "launches", ignored);
}

// Folders that are skipped by their name.
bool has_name_of_output(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == "build" || name == "runs";
}

// Whether a folder of that name is certain to have no sources: it holds such folders.
bool holds_skipped_folders(const fs::path& folder) {
  std::error_code code;
  for (auto it = fs::directory_iterator(folder, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && is_skipped_folder(it->path())) return true;
  }
  return false;
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

struct TextFiles {
  std::vector<fs::path> files;  // ordered by the bytes of their paths
  LeftOut left_out;
};

// Whether to read the entry of a folder; an entry that is not read for a reason that may surprise
// is added to `left_out`.
bool is_read(const fs::path& path,
             const fs::file_status& status,
             const std::vector<std::string>& suffixes,
             LeftOut& left_out) {
  if (fs::is_directory(status)) {
    if (is_system_leftover(path)) {
      if (!path.filename().native().starts_with('.')) left_out.add(kLeftoverReason, path);
      return false;
    }
    if (is_skipped_folder(path)) return false;
    if (!has_name_of_output(path)) return true;
    if (!holds_skipped_folders(path)) left_out.add("by the name build or runs", path);
    return false;
  }
  if (!is_wanted_file(path, suffixes)) return false;
  if (fs::is_symlink(status)) left_out.add("as links", path);
  if (!fs::is_regular_file(status)) return false;
  if (!is_system_leftover(path)) return true;
  left_out.add(kLeftoverReason, path);
  return false;
}

// Regular files below `root`; links are not followed.
Result<TextFiles> list_files(const fs::path& root, const std::vector<std::string>& suffixes) {
  TextFiles found;
  std::error_code code;
  auto it = fs::recursive_directory_iterator(root, code);
  for (; !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    const fs::file_status status = it->symlink_status(code);
    if (code) break;
    const bool is_wanted = is_read(it->path(), status, suffixes, found.left_out);
    if (fs::is_directory(status) && !is_wanted) it.disable_recursion_pending();
    if (fs::is_regular_file(status) && is_wanted) found.files.push_back(it->path());
  }
  if (code) return unreadable(root, code);
  std::ranges::sort(found.files, {}, &fs::path::native);
  return found;
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

// Joins the texts of a folder.
class Joined {
 public:
  Joined(const fs::path& root, std::uint64_t bytes, LeftOut left_out)
      : root_(root), left_out_(std::move(left_out)) {
    text_.reserve(bytes);
  }

  void add(const fs::path& path, const std::string& document) {
    if (document.empty()) return;
    if (auto why = packed_text(document, path)) {
      if (!packed_) packed_ = std::move(why);
      left_out_.add("as packed", path);
      return;
    }
    const auto encoding = text_encoding(document);
    if (encoding == TextEncoding::kBytes) return append(document);
    const auto converted = encoding ? to_utf8(document, *encoding) : std::nullopt;
    if (!converted) return left_out_.add("as no text", path);
    if (converted_++ == 0) first_converted_ = path;
    append(*converted);
  }

  // The corpus; kData if there is no text.
  Result<Corpus> take(const std::vector<std::string>& suffixes) && {
    const std::string what = fmt::format("no text below {}", root_.string());
    if (text_.empty() && packed_) return with_context(*std::move(packed_), what);
    if (text_.empty()) {
      const std::string cause = suffixes.empty() ? "no file without NUL bytes was found"
                                                 : fmt::format("no text file has the suffix {}",
                                                               fmt::join(suffixes, ", "));
      return Error{ErrorCode::kData, what,
                   left_out_.is_empty() ? cause : cause + "; " + left_out_.line(root_),
                   "check data.path and data.suffixes"};
    }
    Corpus corpus(std::move(text_), 0, TokenType::kUint8);
    if (converted_ > 0) {
      corpus.add_remark(fmt::format(
          "{} below {} {} UTF-16 or UTF-32, and read as UTF-8; the first is {}",
          converted_ == 1 ? "1 file" : fmt::format("{} files", converted_), root_.string(),
          converted_ == 1 ? "is" : "are", first_converted_.lexically_relative(root_).string()));
    }
    if (!left_out_.is_empty()) corpus.add_remark(left_out_.line(root_));
    return corpus;
  }

 private:
  void append(const std::string& document) {
    if (!text_.empty()) text_ += '\n';
    text_ += document;
  }

  fs::path root_;
  LeftOut left_out_;
  std::string text_;
  std::optional<Error> packed_;  // the first of them
  std::size_t converted_ = 0;
  fs::path first_converted_;
};

Result<Corpus> join_folder(const fs::path& root, const std::vector<std::string>& suffixes) {
  MOTLEY_ASSIGN(TextFiles found, list_files(root, suffixes));
  MOTLEY_ASSIGN(const std::uint64_t total, total_bytes(root, found.files));
  Joined joined(root, total + found.files.size(), std::move(found.left_out));
  for (const fs::path& file : found.files) {
    auto document = read_file(file, kFolderBytesMax);
    if (!document.ok()) {
      Error error = std::move(document).error();
      error.code = ErrorCode::kData;
      return error;
    }
    joined.add(file, *document);
  }
  return std::move(joined).take(suffixes);
}

// A file in UTF-16 or UTF-32, which is converted in memory.
Result<Corpus> convert_file(std::string_view bytes, TextEncoding encoding, const fs::path& path) {
  const auto not_text = [&](const std::string& cause, const std::string& remedy) {
    return Error{ErrorCode::kData, fmt::format("{} is not usable text", path.string()), cause,
                 remedy};
  };
  const std::string_view name = encoding_name(encoding);
  if (bytes.size() > kFolderBytesMax) {
    return not_text(fmt::format("it is {} of {} bytes; it is converted in memory, and the limit is "
                                "{}",
                                name, bytes.size(), kFolderBytesMax),
                    fmt::format("convert it to a new file: iconv -f {} -t UTF-8", name));
  }
  auto text = to_utf8(bytes, encoding);
  if (!text) {
    return not_text(fmt::format("it begins as {} and has invalid or incomplete characters", name),
                    "check that it was copied completely; for a .bin of tokens set data.kind = "
                    "\"tokens\"");
  }
  Corpus corpus(*std::move(text), 0, TokenType::kUint8);
  corpus.add_remark(fmt::format("{} is {}, and read as UTF-8", path.string(), name));
  return corpus;
}

}  // namespace

std::uint64_t text_memory_bytes(const DataConfig& data) {
  constexpr std::size_t kBeginBytes = 64 << 10;
  std::error_code code;
  if (!fs::is_directory(data.path, code)) {
    const auto file = MappedFile::open(data.path);
    if (!file.ok()) return 0;
    const std::string_view bytes = chars_of(*file);
    const auto encoding = text_encoding(bytes.substr(0, kBeginBytes));
    const bool is_converted = encoding && *encoding != TextEncoding::kBytes;
    return is_converted ? bytes.size() + bytes.size() / 2 : 0;
  }
  const auto found = list_files(data.path, data.suffixes);
  if (!found.ok()) return 0;
  const auto bytes = total_bytes(data.path, found->files);
  return bytes.ok() ? *bytes : 0;
}

Result<Corpus> open_text_corpus(const DataConfig& data) {
  const fs::path path = data.path;
  std::error_code code;
  if (fs::is_directory(path, code)) return join_folder(path, data.suffixes);
  MOTLEY_ASSIGN(auto file, MappedFile::open(path));
  const std::string_view bytes = chars_of(file);
  if (const auto packed = packed_text(bytes, path)) return *packed;
  const auto encoding = text_encoding(bytes);
  if (!encoding) {
    return Error{ErrorCode::kData, fmt::format("{} is not text", path.string()),
                 "it contains NUL bytes", "for a .bin of tokens set data.kind = \"tokens\""};
  }
  if (*encoding != TextEncoding::kBytes) return convert_file(bytes, *encoding, path);
  return Corpus(std::move(file), 0, TokenType::kUint8);
}

}  // namespace motley

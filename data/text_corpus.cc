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
#include "data/files/text_files.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// A folder is joined in memory. Larger texts must be one file, which is mapped.
constexpr std::uint64_t kFolderBytesMax = 4ULL << 30;

std::string_view chars_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The total size of the files, so that a folder that is too large is rejected before reading.
Result<std::uint64_t> total_bytes(const fs::path& root, const std::vector<fs::path>& files) {
  std::uint64_t total = 0;
  for (const fs::path& file : files) {
    std::error_code code;
    total += fs::file_size(file, code);
    if (code) {
      Error error = file_error("read", file, code.value());
      error.code = ErrorCode::kData;
      return error;
    }
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
  MOTLEY_ASSIGN(TextFiles found, find_text_files(root, suffixes));
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
  const auto found = find_text_files(data.path, data.suffixes);
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

#include "data/files/picture_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/files/left_out.h"
#include "data/pictures/decode_picture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using Kind = LeftOutFiles::Kind;

// Also those of formats that are not read, so that they are named and not ignored.
constexpr std::string_view kPictureSuffixes[] = {".png",  ".jpg",  ".jpeg", ".jpe",  ".jfif",
                                                 ".webp", ".gif",  ".tif",  ".tiff", ".bmp",
                                                 ".heic", ".heif", ".avif", ".jp2",  ".jxl"};

// Other files and folders that systems and programs leave behind, in lower case.
constexpr std::string_view kMoreLeftovers[] = {"icon\r", "lost+found", "__pycache__"};

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

template <class List>
bool holds(const List& list, const std::string& word) {
  return std::ranges::find(list, word) != std::end(list);
}

bool is_of_system(const fs::path& path) {
  const std::string name = lower_case(path.filename().string());
  return name.starts_with('.') || is_system_leftover(path) || holds(kMoreLeftovers, name);
}

bool begins_like_picture(const fs::path& path) {
  std::array<char, kPictureMagicBytes> begin;
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), begin.size());
  const auto bytes = std::as_bytes(std::span(begin)).first(static_cast<std::size_t>(file.gcount()));
  return picture_format(bytes).has_value() || !unread_picture_format(bytes).empty();
}

// nullopt: a picture, by its suffix or content.
std::optional<Kind> kind_of(const fs::directory_entry& entry) {
  std::error_code code;
  if (is_of_system(entry.path())) return Kind::kSystem;
  if (!entry.is_regular_file(code)) return Kind::kOther;
  if (entry.file_size(code) == 0 && !code) return Kind::kEmpty;
  if (holds(kPictureSuffixes, lower_case(entry.path().extension().string()))) return std::nullopt;
  return begins_like_picture(entry.path()) ? std::nullopt : std::optional(Kind::kOther);
}

Error unreadable_folder(const fs::path& folder, const std::error_code& code) {
  return {ErrorCode::kData, fmt::format("cannot read {}", folder.string()), code.message(),
          "set data.path to a readable folder"};
}

// In the byte order of their paths.
std::vector<fs::path> sorted(std::vector<fs::path> paths) {
  std::ranges::sort(paths, {}, &fs::path::native);
  return paths;
}

}  // namespace

void LeftOutFiles::add(Kind kind, const fs::path& path) {
  Count& count = counts_.at(static_cast<std::size_t>(kind));
  if (count.files == 0 || path.native() < count.first.native()) count.first = path;
  ++count.files;
}

std::optional<std::string> LeftOutFiles::line(const fs::path& folder) const {
  constexpr std::string_view kWords[] = {"hidden or of the system", "empty", "no picture",
                                         "in no sub-folder of a class"};
  std::uint64_t files = 0;
  std::vector<std::string> parts;
  for (std::size_t kind = 0; kind < counts_.size(); ++kind) {
    const Count& count = counts_[kind];
    if (count.files == 0) continue;
    files += count.files;
    const std::string name = excerpt(count.first.lexically_relative(folder).string());
    parts.push_back(count.files == 1
                        ? fmt::format("1 {} ({})", kWords[kind], name)
                        : fmt::format("{} {} (first: {})", count.files, kWords[kind], name));
  }
  if (files == 0) return std::nullopt;
  return fmt::format("{} {} left out, {}: {}", files, files == 1 ? "file was" : "files were",
                     folder.string(), fmt::join(parts, ", "));
}

Result<std::vector<fs::path>> class_folders(const fs::path& folder, LeftOutFiles& left_out) {
  std::vector<fs::path> folders;
  std::error_code code;
  for (auto it = fs::directory_iterator(folder, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    std::error_code ignored;
    const bool is_class = it->is_directory(ignored) && !is_of_system(it->path());
    if (is_class) {
      folders.push_back(it->path());
    } else {
      left_out.add(kind_of(*it).value_or(Kind::kNoClass), it->path());
    }
  }
  if (code) return unreadable_folder(folder, code);
  return sorted(std::move(folders));
}

Result<std::vector<fs::path>> list_pictures(const fs::path& folder, LeftOutFiles& left_out) {
  std::vector<fs::path> pictures;
  std::error_code code;
  for (auto it = fs::recursive_directory_iterator(folder, code);
       !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !is_of_system(it->path())) continue;
    if (const auto kind = kind_of(*it)) {
      it.disable_recursion_pending();
      left_out.add(*kind, it->path());
    } else {
      pictures.push_back(it->path());
    }
  }
  if (code) return unreadable_folder(folder, code);
  return sorted(std::move(pictures));
}

}  // namespace motley

#include "data/tokens/token_files.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kHeldOutWords = {
    "val", "valid", "validation", "test", "eval", "evaluation", "dev", "holdout", "heldout"};
constexpr std::string_view kTrainWord = "train";

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// "fineweb_val_000001.bin" has the words fineweb, val and bin.
std::vector<std::string> words_of(const fs::path& path) {
  std::vector<std::string> words(1);
  for (const char c : in_lower_case(path.filename().string())) {
    const bool is_letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (is_letter) words.back() += c;
    if (!is_letter && !words.back().empty()) words.emplace_back();
  }
  return words;
}

bool is_named_train(const fs::path& path) {
  return std::ranges::count(words_of(path), kTrainWord) > 0;
}

bool is_named_held_out(const fs::path& path) {
  const auto words = words_of(path);
  return !is_named_train(path) && std::ranges::any_of(words, [](const std::string& word) {
    return std::ranges::find(kHeldOutWords, word) != kHeldOutWords.end();
  });
}

bool has_token_suffix(const fs::path& path) {
  const std::string suffix = in_lower_case(path.extension().string());
  return suffix == ".bin" || suffix == ".npy";
}

// "train.bin.gz". By name, since a folder may have many large ones.
bool is_named_compressed(const fs::path& path) {
  constexpr std::array<std::string_view, 4> kSuffixes = {".gz", ".zst", ".xz", ".bz2"};
  const std::string suffix = in_lower_case(path.extension().string());
  return std::ranges::find(kSuffixes, suffix) != kSuffixes.end() && has_token_suffix(path.stem());
}

Error no_token_files(const fs::path& path, const std::string& cause, const std::string& remedy) {
  return {ErrorCode::kData, fmt::format("no token files, {}", path.string()), cause, remedy};
}

// The regular files of a folder, links to files included, in the byte order of their names.
Result<std::vector<fs::path>> list_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (auto it = fs::directory_iterator(folder, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) files.push_back(it->path());
  }
  if (code) return no_token_files(folder, code.message(), "set data.path to a readable folder");
  std::ranges::sort(files, {}, &fs::path::native);
  return files;
}

Result<void> check_one_suffix(const std::vector<fs::path>& files) {
  const std::string first = in_lower_case(files.front().extension().string());
  for (const fs::path& file : files) {
    if (in_lower_case(file.extension().string()) == first) continue;
    return Error{ErrorCode::kData,
                 fmt::format("token files of two formats, {}", file.parent_path().string()),
                 fmt::format("it has {} and {}, which may be the same tokens",
                             files.front().filename().string(), file.filename().string()),
                 fmt::format("set data.path to the files to train on, for instance \"{}\"",
                             (file.parent_path() / ("*" + first)).string())};
  }
  return {};
}

// Separates files by their names.
Result<TokenFiles> sorted_by_name(std::vector<fs::path> candidates) {
  TokenFiles found;
  for (fs::path& path : candidates) {
    if (is_system_leftover(path)) {
      found.left_out.add("as leftovers of an operating system", path);
    } else {
      (is_named_held_out(path) ? found.held_out : found.files).push_back(std::move(path));
    }
  }
  if (found.files.empty()) std::swap(found.files, found.held_out);
  if (found.files.empty()) return found;
  if (std::ranges::any_of(found.files, is_named_train)) {
    const auto others =
        std::stable_partition(found.files.begin(), found.files.end(), is_named_train);
    for (auto other = others; other != found.files.end(); ++other) {
      found.left_out.add("without train in the name", *other);
    }
    found.files.erase(others, found.files.end());
  }
  MOTLEY_TRY(check_one_suffix(found.files));
  return found;
}

Result<TokenFiles> find_by_pattern(const fs::path& pattern) {
  const fs::path folder = pattern.has_parent_path() ? pattern.parent_path() : fs::path(".");
  MOTLEY_ASSIGN(auto files, list_files_in(folder));
  const std::string name = pattern.filename().string();
  std::erase_if(files, [&](const fs::path& file) {
    return ::fnmatch(name.c_str(), file.filename().c_str(), FNM_PERIOD) != 0;
  });
  if (files.empty()) {
    return no_token_files(pattern, fmt::format("no file in {} has such a name", folder.string()),
                          "correct data.path");
  }
  return sorted_by_name(std::move(files));
}

struct FolderFiles {
  std::vector<fs::path> tokens;
  std::vector<fs::path> compressed;

  [[nodiscard]] bool are_none() const { return tokens.empty() && compressed.empty(); }
};

Result<FolderFiles> token_files_in(const fs::path& folder) {
  MOTLEY_ASSIGN(const auto files, list_files_in(folder));
  FolderFiles found;
  for (const fs::path& file : files) {
    if (has_token_suffix(file)) found.tokens.push_back(file);
    if (is_named_compressed(file)) found.compressed.push_back(file);
  }
  return found;
}

// Of the first of the sub-folders that exists and has some.
Result<FolderFiles> files_of_sub_folder(const fs::path& folder,
                                        std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    std::error_code code;
    if (!fs::is_directory(folder / name, code)) continue;
    MOTLEY_ASSIGN(auto files, token_files_in(folder / name));
    if (!files.are_none()) return files;
  }
  return FolderFiles();
}

// kData if the folder has nothing else.
Result<TokenFiles> sorted_with_compressed(FolderFiles files) {
  if (files.tokens.empty()) {
    const fs::path& first = files.compressed.front();
    return no_token_files(first.parent_path(),
                          fmt::format("its files are compressed ({}{})", first.filename().string(),
                                      files.compressed.size() > 1 ? ", …" : ""),
                          "unpack them first (gzip -d, zstd -d, xz -d, bzip2 -d)");
  }
  MOTLEY_ASSIGN(TokenFiles found, sorted_by_name(std::move(files.tokens)));
  for (const fs::path& file : files.compressed) found.left_out.add("as compressed", file);
  return found;
}

Result<TokenFiles> find_in_folder(const fs::path& folder) {
  MOTLEY_ASSIGN(auto files, token_files_in(folder));
  if (!files.are_none()) return sorted_with_compressed(std::move(files));
  MOTLEY_ASSIGN(files, files_of_sub_folder(folder, std::array{kTrainWord}));
  if (files.are_none()) {
    return no_token_files(folder, "it has no .bin and no .npy file",
                          "set data.path to the folder with the files; for text set data.kind = "
                          "\"text\"");
  }
  MOTLEY_ASSIGN(TokenFiles found, sorted_with_compressed(std::move(files)));
  MOTLEY_ASSIGN(auto held_out, files_of_sub_folder(folder, kHeldOutWords));
  if (found.held_out.empty()) found.held_out = std::move(held_out.tokens);
  return found;
}

}  // namespace

Result<TokenFiles> find_token_files(const fs::path& path) {
  std::error_code code;
  TokenFiles found;
  if (fs::is_directory(path, code)) {
    MOTLEY_ASSIGN(found, find_in_folder(path));
  } else if (!fs::exists(path, code) &&
             path.filename().native().find_first_of("*?") != std::string::npos) {
    MOTLEY_ASSIGN(found, find_by_pattern(path));
  } else {
    fs::path with_suffix = path;
    with_suffix += ".bin";
    const bool is_prefix = !fs::exists(path, code) && fs::is_regular_file(with_suffix, code);
    found.files = {is_prefix ? with_suffix : path};
  }
  if (found.files.empty()) {
    return no_token_files(path, "it has only leftovers of an operating system",
                          "correct data.path");
  }
  return found;
}

fs::path pattern_of(const std::vector<fs::path>& files) {
  const std::string first = files.front().filename().string();
  std::size_t prefix = first.size();
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    const auto differs = std::ranges::mismatch(first, name).in1;
    prefix = std::min(prefix, static_cast<std::size_t>(differs - first.begin()));
  }
  const std::string common = first.substr(0, prefix);
  // A pattern without the word would match the files to train on, too.
  if (files.size() == 1 || !is_named_held_out(common)) return files.front();
  return files.front().parent_path() / (common + "*" + files.front().extension().string());
}

}  // namespace motley

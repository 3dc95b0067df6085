#include "data/data_files.h"

#include <fmt/format.h>

#include <string>
#include <system_error>
#include <utility>

#include "data/files/text_files.h"
#include "data/tokens/token_files.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using Files = std::set<fs::path>;

bool is_hidden(const fs::path& path) {
  return path.filename().native().starts_with('.');
}

// Of a folder, without those below it.
void add_visible(const fs::path& folder, Files& files) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.is_regular_file(failed) && !is_hidden(entry.path())) files.insert(entry.path());
  }
}

void add_visible_below(const fs::path& folder, Files& files) {
  std::error_code failed;
  auto it = fs::recursive_directory_iterator(folder, failed);
  for (; !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    std::error_code ignored;
    if (is_hidden(it->path())) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(ignored)) {
      files.insert(it->path());
    }
  }
}

// A file of tokens with an index of the same name, and the vocabulary's facts in its folder.
void add_tokens(const fs::path& file, Files& files) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return;
  files.insert(file);
  fs::path index = file;
  index.replace_extension(".idx");
  for (const fs::path& beside : {index, file.parent_path() / "meta.pkl"}) {
    if (fs::is_regular_file(beside, ignored)) files.insert(beside);
  }
}

Result<void> add_files(const DataConfig& data, const fs::path& path, Files& files) {
  std::error_code failed;
  if (data.kind == "tokens") {
    MOTLEY_ASSIGN(const TokenFiles found, find_token_files(path));
    for (const auto& some : {found.files, found.held_out}) {
      for (const fs::path& file : some) add_tokens(file, files);
    }
  } else if (fs::is_regular_file(path, failed)) {
    files.insert(path);
  } else if (!fs::is_directory(path, failed)) {
    return {};
  } else if (data.kind == "text") {
    MOTLEY_ASSIGN(TextFiles found, find_text_files(path, data.suffixes));
    files.insert(found.files.begin(), found.files.end());
  } else if (data.kind == "arrays") {
    add_visible(path, files);
  } else {
    add_visible_below(path, files);
  }
  return {};
}

Error no_files(const fs::path& path) {
  std::error_code failed;
  const bool exists = fs::exists(path, failed);
  const bool is_folder = fs::is_directory(path, failed);
  return {ErrorCode::kConfig,
          is_folder ? fmt::format("{} has no files of that kind of data", path.string())
          : exists  ? fmt::format("{} is neither a file nor a folder", path.string())
                    : fmt::format("{} does not exist here", path.string()),
          "the files of the data are sent from here to the machines that have joined",
          is_folder ? "check data.kind, data.path and data.suffixes" : "correct the path"};
}

}  // namespace

Result<std::set<fs::path>> files_of_data(const DataConfig& data) {
  Files files;
  if (data.kind == "synthetic") return files;
  for (const std::string& path : {data.path, data.holdout_path}) {
    if (path.empty()) continue;
    Files some;
    MOTLEY_TRY(add_files(data, path, some));
    if (some.empty()) return no_files(path);
    files.merge(std::move(some));
  }
  return files;
}

}  // namespace motley

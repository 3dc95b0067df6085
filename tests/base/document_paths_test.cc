// Paths of source files in the documents exist.
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/files.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::IsEmpty;

// The source folders. Paths below the folders of runs and builds are not checked.
std::set<std::string> source_folders(const fs::path& root) {
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename();
    const bool is_made = name == "build" || name == "runs";
    if (entry.is_directory() && !name.starts_with('.') && !is_made) folders.insert(name);
  }
  return folders;
}

// The paths in `text` that are in backticks, begin with a source folder and do not exist.
std::vector<std::string> lost_paths(const fs::path& root, const std::string& text) {
  static const std::regex kPath("`([A-Za-z0-9_-]+)(/[A-Za-z0-9_./-]+)`");
  const std::set<std::string> folders = source_folders(root);
  std::vector<std::string> lost;
  for (std::sregex_iterator it(text.begin(), text.end(), kPath); it != std::sregex_iterator();
       ++it) {
    const std::string path = it->str(1) + it->str(2);
    // Documents name a program by its source without the extension.
    const bool leads = fs::exists(root / path) ||
                       (fs::path(path).extension().empty() && fs::exists(root / (path + ".cc")));
    if (folders.contains(it->str(1)) && !leads) lost.push_back(path);
  }
  return lost;
}

TEST(DocumentPaths, LeadSomewhere) {
  const fs::path root = MOTLEY_SOURCE_DIR;
  std::vector<fs::path> documents;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  EXPECT_GT(documents.size(), 50U);
  for (const fs::path& document : documents) {
    const auto text = read_file(document);
    ASSERT_TRUE(text.ok()) << describe(text.error());
    EXPECT_THAT(lost_paths(root, *text), IsEmpty()) << document;
  }
}

TEST(DocumentPaths, OfWhatHasMovedAreNamed) {
  EXPECT_THAT(lost_paths(MOTLEY_SOURCE_DIR,
                         "`base/result.h`, `base/`, `base/gone.h`, `runs/gpt`, base/gone.cc"),
              ElementsAre("base/gone.h"));
}

}  // namespace
}  // namespace motley

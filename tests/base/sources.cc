#include "tests/base/sources.h"

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "base/system/files.h"
#include "tests/base/allowed_edges.h"

namespace motley {

std::map<std::string, std::string> product_sources() {
  std::map<std::string, std::string> texts;
  const std::filesystem::path root = MOTLEY_SOURCE_DIR;
  std::set<std::string> tops;
  for (const auto& [folder, entries] : kMayInclude) tops.insert(folder.substr(0, folder.find('/')));
  for (const std::string& top : tops) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(root / top)) {
      const std::string extension = file.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      const auto text = read_file(file.path());
      if (!text.ok()) ADD_FAILURE() << describe(text.error());
      if (text.ok()) texts[file.path().lexically_relative(root)] = *text;
    }
  }
  return texts;
}

}  // namespace motley

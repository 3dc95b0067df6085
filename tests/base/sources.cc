#include "tests/base/sources.h"

#include <filesystem>
#include <iterator>
#include <regex>

#include <gtest/gtest.h>

#include "base/system/files.h"
#include "tests/base/allowed_edges.h"

namespace motley {
namespace {

// All files of the folders in `kMayInclude` for which `is_wanted`, by "folder/file".
std::map<std::string, std::string> product_files(
    bool (*is_wanted)(const std::filesystem::path& file)) {
  std::map<std::string, std::string> texts;
  const std::filesystem::path root = MOTLEY_SOURCE_DIR;
  std::set<std::string> tops;
  for (const auto& [folder, entries] : kMayInclude) tops.insert(folder.substr(0, folder.find('/')));
  for (const std::string& top : tops) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(root / top)) {
      if (!is_wanted(file.path())) continue;
      const auto text = read_file(file.path());
      if (!text.ok()) ADD_FAILURE() << describe(text.error());
      if (text.ok()) texts[file.path().lexically_relative(root)] = *text;
    }
  }
  return texts;
}

}  // namespace

std::map<std::string, std::string> product_sources() {
  return product_files([](const std::filesystem::path& file) {
    return file.extension() == ".h" || file.extension() == ".cc";
  });
}

std::map<std::string, std::set<std::string>> module_links() {
  static const std::regex kModule(R"(motley_add_module\((\w+)([^)]*)\))");
  static const std::regex kLinked(R"(motley::(\w+))");
  std::map<std::string, std::set<std::string>> links;
  for (const auto& [file, text] : product_files(
           [](const std::filesystem::path& path) { return path.filename() == "CMakeLists.txt"; })) {
    for (std::sregex_iterator module(text.begin(), text.end(), kModule), end; module != end;
         ++module) {
      const std::string body = (*module)[2];
      std::set<std::string>& linked = links[(*module)[1]];
      for (std::sregex_iterator other(body.begin(), body.end(), kLinked); other != end; ++other) {
        linked.insert((*other)[1]);
      }
    }
  }
  return links;
}

}  // namespace motley

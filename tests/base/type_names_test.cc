// Two types with one name in one namespace break the one-definition rule: the linker takes the
// member functions of either. Compilers see only one of them at a time.
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/sources.h"

namespace motley {
namespace {

using testing::ElementsAre;

// The types with external linkage that a file defines: "namespace::Name", or a message about a
// line that cannot be parsed. Relies on clang-format's layout: namespaces and their types begin
// lines.
std::vector<std::string> types_of(const std::string& text) {
  static const std::regex kNamespace(R"(^namespace( [A-Za-z_0-9:]+)? \{$)");
  static const std::regex kType(
      R"(^(?:class|struct|union|enum|enum class)(?: alignas\(.*\))? ([A-Z]\w*(?:<.*>)?)(?: final)?(?: :.*)?(?: \{.*|,|$))");

  struct Namespace {
    std::string name;  // "" = unnamed
    std::size_t line = 0;
  };

  std::vector<Namespace> open;
  std::vector<std::string> types;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_match(line, match, kNamespace)) {
      open.push_back({match[1].matched ? match[1].str().substr(1) : "", number});
    } else if (line == "}" && !open.empty() && open.back().line + 2 == number) {  // a namespace of
                                                                                  // one line
      open.pop_back();
    } else if (line.starts_with("}  // namespace")) {
      if (open.empty()) return {"a namespace that nothing opened: " + line};
      open.pop_back();
    } else if (std::regex_search(line, match, kType)) {
      std::string name;
      bool is_local = false;
      for (const Namespace& each : open) {
        is_local |= each.name.empty();
        name += each.name + "::";
      }
      if (!is_local) types.push_back(name + match[1].str());
    }
  }
  return open.empty() ? types : std::vector<std::string>{"a namespace that nothing closes"};
}

TEST(TypeNames, AreThoseThatTheWholeProgramSees) {
  EXPECT_THAT(types_of("namespace a {\n"
                       "struct One {\n  struct Inner {};\n};\n"
                       "class Declared;\n"
                       "namespace c {\nclass Declared;\n}\n"
                       "class Two final : public One {\n};\n"
                       "namespace {\nstruct Local {\n};\n}  // namespace\n"
                       "template <class T>\nclass Two<T*> {\n};\n"
                       "enum class Three : int { kA, kB };\n"
                       "namespace b {\nenum Four {\n};\n}  // namespace b\n"
                       "}  // namespace a\n"),
              ElementsAre("a::One", "a::Two", "a::Two<T*>", "a::Three", "a::b::Four"));
}

TEST(TypeNames, AreEachDefinedOnce) {
  std::map<std::string, std::vector<std::string>> files;  // by type
  for (const auto& [file, text] : product_sources()) {
    for (const std::string& type : types_of(text)) files[type].push_back(file);
  }
  EXPECT_GT(files.size(), 500U);
  for (const auto& [type, where] : files) {
    if (where.size() > 1) ADD_FAILURE() << type << ": " << testing::PrintToString(where);
  }
}

}  // namespace
}  // namespace motley

// The dependencies between the modules' folders, read from the sources: an include in the wrong
// direction compiles, so only this test detects it.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/allowed_edges.h"
#include "tests/base/sources.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool is_wrapper(const std::string& file, const std::string& wrapper) {
  return wrapper.ends_with('_') ? file.starts_with(wrapper) : file == wrapper;
}

// A folder stays small enough to survey, and a folder that depends on nearly everything is
// refused.
constexpr std::size_t kFilesMax = 30;
constexpr std::size_t kFoldersUsedMax = 22;

struct Include {
  std::string path;
  bool quoted = false;
};

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::string top_of(const std::string& path) {
  return path.substr(0, path.find('/'));
}

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> includes;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line(text.substr(at, end - at));
    at = end + 1;
    std::erase_if(line, [](char c) { return c == ' ' || c == '\t'; });
    constexpr std::string_view kDirective = "#include";
    if (!line.starts_with(kDirective) || line.size() == kDirective.size()) continue;
    const bool quoted = line[kDirective.size()] == '"';
    const std::size_t first = kDirective.size() + 1;
    includes.push_back({line.substr(first, line.find(quoted ? '"' : '>', first) - first), quoted});
  }
  return includes;
}

const std::set<std::string>* allowed_for(const std::string& folder) {
  const auto line = std::ranges::find(kMayInclude, folder, [](const auto& e) { return e.first; });
  return line == kMayInclude.end() ? nullptr : &line->second;
}

bool may_include(const std::string& file, const Include& include) {
  const std::string folder = folder_of(file);
  if (include.quoted) {
    const std::set<std::string>* allowed = allowed_for(folder);
    const std::string used = folder_of(include.path);
    return used == folder || (allowed != nullptr && allowed->contains(used));
  }
  if (kTorchHeaders.contains(top_of(include.path))) return kTorchFolders.contains(folder);
  const auto wraps = [&](const auto& wrapped) { return include.path.starts_with(wrapped.first); };
  return std::ranges::none_of(kWrappedIn, wraps) ||
         std::ranges::any_of(kWrappedIn, [&](const auto& wrapped) {
           return wraps(wrapped) && is_wrapper(file, wrapped.second);
         });
}

// "file includes header" for every include in `text` that breaks a rule.
std::vector<std::string> broken_edges(const std::string& file, std::string_view text) {
  std::vector<std::string> broken;
  for (const Include& include : includes_of(text)) {
    if (!may_include(file, include)) broken.push_back(file + " includes " + include.path);
  }
  return broken;
}

using Edges = std::map<std::string, std::set<std::string>>;

// All that `from` uses, directly or through others.
std::set<std::string> reached(const Edges& edges, const std::string& from) {
  std::set<std::string> found;
  std::vector<std::string> open = {from};
  while (!open.empty()) {
    const auto used = edges.find(open.back());
    open.pop_back();
    if (used == edges.end()) continue;
    for (const std::string& each : used->second) {
      if (found.insert(each).second) open.push_back(each);
    }
  }
  return found;
}

TEST(Layers, EveryIncludeFollowsAnAllowedEdge) {
  const auto texts = product_sources();
  EXPECT_GT(texts.size(), 100U);
  for (const auto& [file, text] : texts) EXPECT_THAT(broken_edges(file, text), IsEmpty());
}

TEST(Layers, EveryAllowedEdgeIsUsed) {
  std::map<std::string, std::set<std::string>> used;
  for (const auto& [file, text] : product_sources()) {
    const std::string folder = folder_of(file);
    for (const Include& include : includes_of(text)) {
      const std::string other = folder_of(include.path);
      if (include.quoted && other != folder) used[folder].insert(other);
    }
  }
  for (const auto& [folder, entries] : kMayInclude) EXPECT_EQ(used[folder], entries) << folder;
}

TEST(Layers, NoArrowRunsUp) {
  std::set<std::string> below;
  for (const auto& [folder, entries] : kMayInclude) {
    for (const std::string& used : entries) {
      EXPECT_TRUE(below.contains(used)) << folder << " uses " << used << ", which stands above it";
    }
    EXPECT_TRUE(below.insert(folder).second) << folder << " stands in the table twice";
  }
}

// Watching and reporting a run read its folder: they need neither the launcher nor its protocol.
TEST(Layers, WatchingAndReportingReachNoLauncher) {
  const Edges edges(kMayInclude.begin(), kMayInclude.end());
  const std::set<std::string> launcher = {"cluster", "protocol", "worker"};
  for (const auto& [folder, entries] : kMayInclude) {
    if (!std::set<std::string>{"figures", "record", "watch"}.contains(top_of(folder))) continue;
    for (const std::string& used : reached(edges, folder)) {
      EXPECT_FALSE(launcher.contains(top_of(used))) << folder << " reaches " << used;
    }
  }
}

TEST(Layers, WatchingAndReportingLinkNoLauncher) {
  const Edges links = module_links();
  for (const char* module : {"figure_pages", "record", "terminal", "view", "watch_browser",
                             "watch_http", "watch_metrics", "watch_page"}) {
    ASSERT_TRUE(links.contains(module)) << module;
    for (const char* launcher : {"cluster", "protocol", "worker_core"}) {
      EXPECT_FALSE(reached(links, module).contains(launcher)) << module << " links " << launcher;
    }
  }
  EXPECT_TRUE(reached(links, "cli").contains("cluster"));
}

TEST(Layers, WhatIsUsedThroughOthersIsReached) {
  const Edges edges = {{"watch", {"view"}}, {"view", {"record", "watch"}}, {"other", {"cluster"}}};
  EXPECT_THAT(reached(edges, "watch"), ElementsAre("record", "view", "watch"));
  EXPECT_THAT(reached(edges, "record"), IsEmpty());
}

TEST(Layers, NoFolderUsesEverything) {
  for (const auto& [folder, entries] : kMayInclude) {
    EXPECT_LE(entries.size(), kFoldersUsedMax) << folder;
  }
}

TEST(Layers, FoldersStaySmall) {
  std::map<std::string, std::size_t> files;
  for (const auto& [file, text] : product_sources()) ++files[folder_of(file)];
  for (const auto& [folder, count] : files) {
    EXPECT_NE(allowed_for(folder), nullptr) << folder << " is not in the table";
    EXPECT_LE(count, kFilesMax) << folder;
  }
}

TEST(Layers, AnEdgeOutsideTheTableIsNamed) {
  EXPECT_THAT(broken_edges("comm/a.cc", "#include \"base/log.h\"\n# include \"job/config.h\"\n"),
              ElementsAre("comm/a.cc includes job/config.h"));
  EXPECT_THAT(broken_edges("cli/a.cc", "#include \"training/vote/vote.h\"  // why\n"),
              ElementsAre(HasSubstr("training/vote/vote.h")));
}

TEST(Layers, AFolderInsideAnotherIsNotOpenWithIt) {
  EXPECT_THAT(broken_edges("cli/a.cc", "#include \"models/spec/model_spec.h\"\n"), IsEmpty());
  EXPECT_THAT(broken_edges("cli/a.cc", "#include \"models/layers/layer.h\"\n"),
              ElementsAre("cli/a.cc includes models/layers/layer.h"));
}

TEST(Layers, ALibraryStaysInTheFileThatWrapsIt) {
  for (const auto& [header, wrapper] : kWrappedIn) {
    const std::string text = "#pragma once\n#include <" + header + ">";
    EXPECT_THAT(broken_edges(wrapper.ends_with('_') ? wrapper + "x.h" : wrapper, text), IsEmpty());
    EXPECT_THAT(broken_edges(folder_of(wrapper) + "/other.h", text),
                ElementsAre(HasSubstr(header)));
  }
}

TEST(Layers, TorchStaysBehindItsWall) {
  EXPECT_THAT(broken_edges("models/layers/a.h", "#include <ATen/core/Tensor.h>\n"), IsEmpty());
  for (const char* header : {"ATen/ATen.h", "c10/core/Allocator.h", "torch/version.h"}) {
    const std::string text = std::string("#include <") + header + ">\n";
    EXPECT_THAT(broken_edges("pipeline/execute/a.cc", text), ElementsAre(HasSubstr(header)));
  }
}

TEST(Layers, OrdinaryTextHasNoEdges) {
  EXPECT_THAT(includes_of(""), IsEmpty());
  EXPECT_THAT(includes_of("// see \"job/config.h\"\n#include\nint include;"), IsEmpty());
}

}  // namespace
}  // namespace motley

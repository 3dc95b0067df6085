// The edges between the folders of modules, read from the sources: an include that crosses a layer
// the wrong way compiles for as long as nobody looks.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What a folder may include beside itself: a whole folder, or single headers where only a part of
// the other folder stands below. Every entry is in use.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"base", {}},
    {"job", {"base"}},
    {"models", {"base", "job"}},
    // Plans are values below the schedules, the planner stands above them.
    {"partitioner",
     {"base", "models/layer_memory.h", "models/model_spec.h", "pipeline/action.h",
      "pipeline/allreduce_plan.h", "pipeline/schedules.h", "pipeline/sum_group.h"}},
    {"pipeline", {"base", "comm", "compression", "partitioner/plan.h", "partitioner/trace.h"}},
    {"data", {"base", "job"}},
    {"compression", {"base"}},
    {"comm", {"base"}},
    {"checkpoint", {"base"}},
    {"cluster",
     {"base", "checkpoint", "compression", "data", "job", "models/hf_config.h",
      "models/model_spec.h", "partitioner", "pipeline/sum_group.h"}},
    {"training",
     {"base", "checkpoint", "cluster", "comm", "compression", "data", "job", "models",
      "partitioner", "pipeline"}},
    {"tools",
     {"base", "checkpoint", "cluster", "comm/transport.h", "compression/codec_rates.h", "job",
      "models/model_spec.h", "partitioner"}},
};

// The one file that wraps each library; or, where it ends in an underscore, the family of files.
const std::map<std::string, std::string> kWrappedIn = {
    {"boost/asio/", "comm/tcp_"},
    {"boost/program_options", "tools/arguments.cc"},
    {"dnnl.hpp", "models/onednn_product.cc"},
    {"gloo/", "comm/gloo_"},
    {"openssl/core_names.h", "comm/derived_key.cc"},
    {"openssl/err.h", "comm/tls_session.cc"},
    {"openssl/kdf.h", "comm/derived_key.cc"},
    {"openssl/params.h", "comm/derived_key.cc"},
    {"openssl/ssl.h", "comm/tls_session.cc"},
    {"spdlog/", "base/log.cc"},
    {"toml++/", "base/toml.cc"},
    {"ucp/", "comm/ucx_"},
    {"ucs/", "comm/ucx_"},
    {"uct/", "comm/ucx_"},
    {"xxhash.h", "base/hash.cc"},
    {"zstd.h", "compression/zstd_codec.cc"},
};

bool is_wrapper(const std::string& file, const std::string& wrapper) {
  return wrapper.ends_with('_') ? file.starts_with(wrapper) : file == wrapper;
}

const std::set<std::string> kTorchHeaders = {"ATen", "c10", "torch"};
const std::set<std::string> kTorchFolders = {"models", "training"};

struct Include {
  std::string path;
  bool quoted = false;
};

std::string folder_of(const std::string& path) {
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

// The entry of the table that lets `folder` include the header; empty when there is none.
std::string allowed_by(const std::string& folder, const std::string& header) {
  const auto entries = kMayInclude.find(folder);
  if (entries == kMayInclude.end()) return "";
  for (const std::string& entry : {header, folder_of(header)}) {
    if (entries->second.contains(entry)) return entry;
  }
  return "";
}

bool may_include(const std::string& file, const Include& include) {
  const std::string folder = folder_of(file);
  if (include.quoted) {
    return folder_of(include.path) == folder || !allowed_by(folder, include.path).empty();
  }
  if (kTorchHeaders.contains(folder_of(include.path))) return kTorchFolders.contains(folder);
  return std::ranges::all_of(kWrappedIn, [&](const auto& wrapped) {
    return !include.path.starts_with(wrapped.first) || is_wrapper(file, wrapped.second);
  });
}

// "file includes header" for every include of `text` that breaks a rule.
std::vector<std::string> broken_edges(const std::string& file, std::string_view text) {
  std::vector<std::string> broken;
  for (const Include& include : includes_of(text)) {
    if (!may_include(file, include)) broken.push_back(file + " includes " + include.path);
  }
  return broken;
}

std::map<std::string, std::string> sources() {
  std::map<std::string, std::string> texts;  // by "folder/file"
  const std::filesystem::path root = MOTLEY_SOURCE_DIR;
  for (const auto& [folder, entries] : kMayInclude) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = file.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      const auto text = read_file(file.path());
      if (!text.ok()) ADD_FAILURE() << describe(text.error());
      if (text.ok()) texts[file.path().lexically_relative(root)] = *text;
    }
  }
  return texts;
}

TEST(Layers, EveryIncludeFollowsAnAllowedEdge) {
  const auto texts = sources();
  EXPECT_GT(texts.size(), 100U);
  for (const auto& [file, text] : texts) EXPECT_THAT(broken_edges(file, text), IsEmpty());
}

TEST(Layers, EveryAllowedEdgeIsUsed) {
  std::map<std::string, std::set<std::string>> used;
  for (const auto& [file, text] : sources()) {
    for (const Include& include : includes_of(text)) {
      const std::string entry = allowed_by(folder_of(file), include.path);
      if (include.quoted && !entry.empty()) used[folder_of(file)].insert(entry);
    }
  }
  for (const auto& [folder, entries] : kMayInclude) EXPECT_EQ(used[folder], entries) << folder;
}

TEST(Layers, AnEdgeOutsideTheTableIsNamed) {
  EXPECT_THAT(broken_edges("comm/a.cc", "#include \"base/log.h\"\n# include \"job/config.h\"\n"),
              ElementsAre("comm/a.cc includes job/config.h"));
  EXPECT_THAT(broken_edges("tools/a.cc", "#include \"training/vote.h\"  // why\n"),
              ElementsAre(HasSubstr("training/vote.h")));
}

TEST(Layers, OnlyTheNamedHeadersOfAFolderAreOpen) {
  EXPECT_THAT(broken_edges("tools/a.cc", "#include \"models/model_spec.h\"\n"), IsEmpty());
  EXPECT_THAT(broken_edges("tools/a.cc", "#include \"models/layer.h\"\n"),
              ElementsAre("tools/a.cc includes models/layer.h"));
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
  EXPECT_THAT(broken_edges("models/a.h", "#include <ATen/core/Tensor.h>\n"), IsEmpty());
  for (const char* header : {"ATen/ATen.h", "c10/core/Allocator.h", "torch/version.h"}) {
    const std::string text = std::string("#include <") + header + ">\n";
    EXPECT_THAT(broken_edges("pipeline/a.cc", text), ElementsAre(HasSubstr(header)));
  }
}

TEST(Layers, OrdinaryTextHasNoEdges) {
  EXPECT_THAT(includes_of(""), IsEmpty());
  EXPECT_THAT(includes_of("// see \"job/config.h\"\n#include\nint include;"), IsEmpty());
}

}  // namespace
}  // namespace motley

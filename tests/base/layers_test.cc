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

#include "base/system/files.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What a folder may include beside itself, lowest first: an entry names only folders that stand
// above it in this list. Every entry is in use.
const std::vector<std::pair<std::string, std::set<std::string>>> kMayInclude = {
    {"base", {}},
    {"base/system", {"base"}},
    {"job", {"base"}},
    {"plan", {"base"}},
    {"plan/cluster", {"base", "plan"}},
    {"pictures", {"plan"}},
    {"checkpoint", {"base", "base/system"}},
    {"checkpoint/lock", {"base", "base/system", "checkpoint"}},
    {"checkpoint/save", {"base", "base/system", "checkpoint"}},
    {"checkpoint/store",
     {"base", "base/system", "checkpoint", "checkpoint/lock", "checkpoint/save"}},
    {"models/device/kinds", {"plan"}},
    {"models/device", {"base", "models/device/kinds", "plan"}},
    {"models/kernels", {"base"}},
    {"models/package", {"base", "base/system", "checkpoint", "plan"}},
    {"models/graph", {"base", "checkpoint", "models/device/kinds", "models/package"}},
    {"models/spec", {"base", "checkpoint", "job", "models/package"}},
    {"models/layers",
     {"base", "models/device", "models/device/kinds", "models/graph", "models/kernels",
      "models/package", "models/spec"}},
    {"models/layers/device", {"base", "models/device", "models/layers", "models/spec"}},
    {"data/files", {"base", "base/system"}},
    {"data", {"base", "base/system", "data/files", "job", "models/spec"}},
    {"compression/kernels", {}},
    {"compression/codec", {"base", "compression/kernels"}},
    {"compression/formats", {"base", "compression/codec", "compression/kernels"}},
    // Rounds to 16 bits as what goes over wires is rounded.
    {"checkpoint/convert",
     {"base", "base/system", "checkpoint", "checkpoint/save", "compression/formats"}},
    {"compression/lowrank", {"base", "compression/codec", "compression/kernels"}},
    {"compression/sparse", {"base", "compression/codec", "compression/kernels"}},
    {"compression",
     {"compression/codec", "compression/formats", "compression/lowrank", "compression/sparse"}},
    {"compression/feedback",
     {"base", "compression", "compression/codec", "compression/formats", "compression/kernels",
      "compression/lowrank", "compression/sparse"}},
    {"comm/transport", {"base"}},
    {"comm/tcp", {"base", "comm/transport"}},
    {"comm/gloo", {"base", "comm/tcp", "comm/transport"}},
    {"comm/ucx", {"base", "comm/tcp", "comm/transport"}},
    {"comm", {"base", "comm/gloo", "comm/tcp", "comm/transport", "comm/ucx"}},
    {"comm/frames", {"base", "comm/transport"}},
    {"checkpoint/transfer", {"base", "base/system", "checkpoint", "comm/frames", "comm/transport"}},
    {"pipeline/schedule", {"base", "plan"}},
    {"pipeline/reduce",
     {"base", "comm/frames", "comm/transport", "compression", "compression/codec",
      "compression/feedback", "compression/kernels", "pipeline/schedule"}},
    {"pipeline/execute",
     {"base", "comm/frames", "comm/transport", "compression", "compression/codec",
      "compression/feedback", "pipeline/reduce", "pipeline/schedule", "plan"}},
    {"partitioner/cost",
     {"base", "compression", "compression/codec", "models/spec", "pipeline/schedule", "plan"}},
    {"partitioner/simulate",
     {"base", "models/spec", "partitioner/cost", "pipeline/schedule", "plan"}},
    {"partitioner/pipelines", {"base", "partitioner/cost"}},
    {"partitioner/search",
     {"base", "models/spec", "partitioner/cost", "partitioner/pipelines", "partitioner/simulate",
      "pipeline/schedule", "plan"}},
    {"partitioner/advise",
     {"base", "compression", "models/spec", "partitioner/cost", "partitioner/search",
      "partitioner/simulate", "plan"}},
    {"protocol", {"base", "checkpoint", "checkpoint/store", "job", "plan"}},
    {"training/optimizer", {"base", "job"}},
    {"training/vote",
     {"base", "checkpoint", "job", "pipeline/execute", "pipeline/schedule", "training/optimizer"}},
    {"training/pushes",
     {"base", "compression", "compression/feedback", "job", "models/spec", "pipeline/schedule",
      "plan", "training/optimizer"}},
    {"training",
     {"base", "checkpoint", "compression/feedback", "compression/formats", "compression/kernels",
      "data", "job", "models/device", "models/kernels", "models/layers", "models/package",
      "models/spec", "partitioner/search", "pipeline/execute", "plan", "training/optimizer",
      "training/pushes", "training/vote"}},
    {"measure",
     {"base",
      "base/system",
      "comm",
      "comm/frames",
      "comm/transport",
      "compression",
      "compression/codec",
      "compression/feedback",
      "compression/kernels",
      "job",
      "models/device",
      "models/kernels",
      "models/layers",
      "models/spec",
      "pipeline/reduce",
      "pipeline/schedule",
      "plan",
      "protocol",
      "training",
      "training/optimizer"}},
    {"rehearsal",
     {"base", "job", "models/spec", "partitioner/cost", "partitioner/search", "pipeline/execute",
      "plan", "training/optimizer", "training/vote"}},
    {"worker/group", {"base", "comm", "comm/frames", "comm/transport", "protocol"}},
    {"worker/store",
     {"base", "base/system", "checkpoint", "checkpoint/lock", "checkpoint/store",
      "checkpoint/transfer", "comm/frames", "protocol", "worker/group"}},
    {"worker/keep",
     {"base", "checkpoint", "checkpoint/lock", "checkpoint/store", "checkpoint/transfer",
      "comm/frames", "protocol"}},
    {"worker/train",
     {"base",
      "base/system",
      "checkpoint",
      "checkpoint/save",
      "comm/frames",
      "comm/transport",
      "compression/feedback",
      "models/device",
      "models/device/kinds",
      "models/layers",
      "models/spec",
      "partitioner/search",
      "pipeline/execute",
      "pipeline/schedule",
      "plan",
      "protocol",
      "rehearsal",
      "training",
      "training/pushes",
      "training/vote",
      "worker/group",
      "worker/keep"}},
    {"worker",
     {"base",
      "base/system",
      "checkpoint",
      "comm",
      "comm/frames",
      "comm/transport",
      "measure",
      "models/device",
      "models/device/kinds",
      "models/kernels",
      "models/layers",
      "models/spec",
      "pipeline/execute",
      "plan",
      "protocol",
      "rehearsal",
      "training",
      "worker/group",
      "worker/store",
      "worker/train"}},
    {"cluster/process", {"base", "base/system"}},
    {"cluster/lease", {"base", "base/system"}},
    {"cluster/launch",
     {"base", "base/system", "cluster/lease", "cluster/process", "job", "plan", "protocol"}},
    {"cluster/examine",
     {"base", "base/system", "cluster/launch", "cluster/process", "compression/feedback", "job",
      "models/spec", "partitioner/cost", "plan", "protocol", "training/optimizer"}},
    {"cluster/follow",
     {"base", "base/system", "cluster/launch", "compression", "compression/codec", "models/spec",
      "partitioner/advise", "partitioner/cost", "pipeline/schedule", "plan", "protocol"}},
    {"cluster/learn",
     {"base", "base/system", "partitioner/advise", "partitioner/search", "plan", "protocol"}},
    {"cluster/tensorboard", {"base", "base/system", "cluster/follow"}},
    {"pictures/pages", {"base", "cluster/follow", "partitioner/advise", "pictures", "plan"}},
    {"cluster/stores",
     {"base", "checkpoint", "checkpoint/store", "cluster/launch", "cluster/process", "job",
      "models/spec", "plan", "protocol"}},
    {"cluster/run",
     {"base",
      "base/system",
      "checkpoint",
      "checkpoint/store",
      "cluster/stores",
      "cluster/examine",
      "cluster/follow",
      "cluster/launch",
      "cluster/tensorboard",
      "checkpoint/lock",
      "compression",
      "compression/feedback",
      "data",
      "job",
      "models/spec",
      "partitioner/advise",
      "partitioner/cost",
      "partitioner/search",
      "pipeline/schedule",
      "plan",
      "protocol",
      "training/optimizer"}},
    {"cluster/recover",
     {"base", "checkpoint", "cluster/follow", "cluster/launch", "cluster/process", "cluster/run",
      "cluster/learn", "job", "partitioner/advise", "plan"}},
    {"watch/view",
     {"base", "base/system", "checkpoint/lock", "cluster/follow", "cluster/launch", "cluster/run",
      "job", "plan"}},
    {"watch/terminal", {"base", "base/system", "cluster/process", "plan", "watch/view"}},
    {"watch/page", {"base"}},
    {"watch/http", {"base", "watch/page"}},
    {"watch/metrics", {"base/system", "cluster/launch", "plan", "watch/view"}},
    {"watch/browser",
     {"base", "base/system", "cluster/process", "watch/http", "watch/metrics", "watch/view"}},
    {"tools",
     {"base",
      "base/system",
      "checkpoint",
      "cluster/examine",
      "cluster/follow",
      "cluster/launch",
      "checkpoint/lock",
      "cluster/process",
      "cluster/recover",
      "cluster/run",
      "comm",
      "comm/transport",
      "compression/feedback",
      "job",
      "models/package",
      "models/spec",
      "partitioner/advise",
      "plan",
      "plan/cluster",
      "protocol"}},
    {"tools/planning",
     {"base", "base/system", "cluster/examine", "cluster/follow", "cluster/launch",
      "cluster/process", "cluster/run", "job", "partitioner/advise", "partitioner/search",
      "pictures", "pictures/pages", "plan", "plan/cluster", "tools", "watch/view"}},
    {"tools/ckpt",
     {"base", "base/system", "checkpoint", "checkpoint/convert", "checkpoint/lock",
      "checkpoint/store", "cluster/launch", "cluster/process", "cluster/run", "cluster/stores",
      "job", "models/spec", "partitioner/advise", "plan", "tools"}},
    {"tools/guide", {"base", "base/system", "job", "tools"}},
    {"tools/watch", {"base", "base/system", "tools", "watch/browser", "watch/terminal"}},
};

// The one file that wraps each library; or, where it ends in an underscore, the family of files. A
// library that two modules use stands here twice.
const std::multimap<std::string, std::string> kWrappedIn = {
    {"boost/asio/", "comm/tcp/tcp_"},
    {"boost/asio/", "watch/http/http_"},
    {"boost/beast/", "watch/http/http_"},
    {"boost/program_options", "tools/arguments.cc"},
    {"dnnl.hpp", "models/kernels/onednn_product.cc"},
    {"gloo/", "comm/gloo/gloo_"},
    {"openssl/core_names.h", "comm/tcp/derived_key.cc"},
    {"openssl/err.h", "comm/tcp/tls_session.cc"},
    {"openssl/evp.h", "models/package/sha256.cc"},
    {"openssl/kdf.h", "comm/tcp/derived_key.cc"},
    {"openssl/params.h", "comm/tcp/derived_key.cc"},
    {"openssl/ssl.h", "comm/tcp/tls_session.cc"},
    {"png.h", "data/files/png_picture.cc"},
    {"spdlog/", "base/log.cc"},
    {"toml++/", "base/toml.cc"},
    {"turbojpeg.h", "data/files/jpeg_picture.cc"},
    {"ucp/", "comm/ucx/ucx_"},
    {"ucs/", "comm/ucx/ucx_"},
    {"uct/", "comm/ucx/ucx_"},
    {"xxhash.h", "base/hash.cc"},
    {"zstd.h", "compression/formats/zstd_codec.cc"},
};

bool is_wrapper(const std::string& file, const std::string& wrapper) {
  return wrapper.ends_with('_') ? file.starts_with(wrapper) : file == wrapper;
}

const std::set<std::string> kTorchHeaders = {"ATen", "c10", "torch"};
const std::set<std::string> kTorchFolders = {
    "measure",        "models/device", "models/device/kinds",  "models/graph",
    "models/kernels", "models/layers", "models/layers/device", "training",
    "worker",         "worker/train"};

// No folder grows past what a newcomer can look over, nor may one that uses everything hide behind
// its name.
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
  std::set<std::string> tops;
  for (const auto& [folder, entries] : kMayInclude) tops.insert(top_of(folder));
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

TEST(Layers, EveryIncludeFollowsAnAllowedEdge) {
  const auto texts = sources();
  EXPECT_GT(texts.size(), 100U);
  for (const auto& [file, text] : texts) EXPECT_THAT(broken_edges(file, text), IsEmpty());
}

TEST(Layers, EveryAllowedEdgeIsUsed) {
  std::map<std::string, std::set<std::string>> used;
  for (const auto& [file, text] : sources()) {
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

TEST(Layers, NoFolderUsesEverything) {
  for (const auto& [folder, entries] : kMayInclude) {
    EXPECT_LE(entries.size(), kFoldersUsedMax) << folder;
  }
}

TEST(Layers, FoldersStaySmall) {
  std::map<std::string, std::size_t> files;
  for (const auto& [file, text] : sources()) ++files[folder_of(file)];
  for (const auto& [folder, count] : files) {
    EXPECT_NE(allowed_for(folder), nullptr) << folder << " is not in the table";
    EXPECT_LE(count, kFilesMax) << folder;
  }
}

TEST(Layers, AnEdgeOutsideTheTableIsNamed) {
  EXPECT_THAT(broken_edges("comm/a.cc", "#include \"base/log.h\"\n# include \"job/config.h\"\n"),
              ElementsAre("comm/a.cc includes job/config.h"));
  EXPECT_THAT(broken_edges("tools/a.cc", "#include \"training/vote/vote.h\"  // why\n"),
              ElementsAre(HasSubstr("training/vote/vote.h")));
}

TEST(Layers, AFolderInsideAnotherIsNotOpenWithIt) {
  EXPECT_THAT(broken_edges("tools/a.cc", "#include \"models/spec/model_spec.h\"\n"), IsEmpty());
  EXPECT_THAT(broken_edges("tools/a.cc", "#include \"models/layers/layer.h\"\n"),
              ElementsAre("tools/a.cc includes models/layers/layer.h"));
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

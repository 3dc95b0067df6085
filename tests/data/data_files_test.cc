#include "data/data_files.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace motley {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class FilesOfData : public testing::Test {
 protected:
  ~FilesOfData() override { fs::remove_all(folder_); }

  void write(const std::string& path) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << path;
  }

  // The paths below the folder, or the error's code.
  [[nodiscard]] std::vector<std::string> of(const std::string& kind,
                                            const std::string& path,
                                            const std::vector<std::string>& suffixes = {},
                                            const std::string& holdout_path = "") const {
    DataConfig data;
    data.kind = kind;
    data.path = path.empty() ? folder_.string() : (folder_ / path).string();
    data.suffixes = suffixes;
    if (!holdout_path.empty()) data.holdout_path = folder_ / holdout_path;
    const auto files = files_of_data(data);
    if (!files.ok()) return {std::to_string(static_cast<int>(files.error().code))};
    std::vector<std::string> paths;
    for (const fs::path& file : *files) paths.push_back(file.lexically_relative(folder_));
    return paths;
  }

  const fs::path folder_ = [] {
    std::string name = (fs::temp_directory_path() / "motley-data-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return fs::path(name);
  }();
};

TEST_F(FilesOfData, OfTokensAreTheirShardsAndTheirIndex) {
  for (const char* name : {"corpus.bin", "corpus.idx", "part-0.bin", "part-1.bin", "meta.pkl",
                           "notes.txt", "corpus.txt"}) {
    write(name);
  }
  EXPECT_THAT(of("tokens", "corpus.bin"), ElementsAre("corpus.bin", "corpus.idx", "meta.pkl"));
  EXPECT_THAT(of("tokens", "corpus"), ElementsAre("corpus.bin", "corpus.idx", "meta.pkl"));
  EXPECT_THAT(of("tokens", "part-*.bin"), ElementsAre("meta.pkl", "part-0.bin", "part-1.bin"));
  EXPECT_THAT(of("tokens", "part-0.bin", {}, "part-1.bin"),
              ElementsAre("meta.pkl", "part-0.bin", "part-1.bin"));
  EXPECT_THAT(of("tokens", "absent-*.bin"), ElementsAre("8"));
}

// A home folder has keys and caches, which must not be sent.
TEST_F(FilesOfData, OfTextsAreTheOnesThatAreRead) {
  for (const char* name : {"a.md", "sub/b.md", "sub/c.cc", ".ssh/id_ed25519", ".git/config.md",
                           "out/CMakeCache.txt", "out/d.md", "run/launches/1.json", "run/e.md"}) {
    write(name);
  }
  fs::create_symlink(folder_ / "a.md", folder_ / "link.md");
  EXPECT_THAT(of("text", "", {".md"}), ElementsAre("a.md", "sub/b.md"));
  EXPECT_THAT(of("text", "", {".md", ".cc"}), ElementsAre("a.md", "sub/b.md", "sub/c.cc"));
  EXPECT_THAT(of("text", "sub/b.md"), ElementsAre("sub/b.md"));
  EXPECT_THAT(of("text", "", {".rs"}), ElementsAre("3"));
}

TEST_F(FilesOfData, OfPicturesAndArraysAreNotHidden) {
  for (const char* name : {"cats/1.png", "dogs/2.jpg", "cats/.3.png", ".thumbs/4.png"}) write(name);
  EXPECT_THAT(of("images", ""), ElementsAre("cats/1.png", "dogs/2.jpg"));
  for (const char* name : {"set/inputs.npy", "set/targets.npy", "set/.x.npy", "set/old/inputs.npy"})
    write(name);
  EXPECT_THAT(of("arrays", "set"), ElementsAre("set/inputs.npy", "set/targets.npy"));
}

TEST_F(FilesOfData, OfAPathThatIsNoneAreAnError) {
  EXPECT_THAT(of("text", "absent"), ElementsAre("3"));
  DataConfig data;
  data.path = "/dev/null";
  const auto files = files_of_data(data);
  ASSERT_FALSE(files.ok());
  EXPECT_THAT(files.error().what, testing::HasSubstr("neither a file nor a folder"));
}

TEST_F(FilesOfData, OfSyntheticDataAreNone) {
  EXPECT_THAT(of("synthetic", "absent"), ElementsAre());
}

}  // namespace
}  // namespace motley

// Output paths at which something other than a regular file exists.
#include "cli/output_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/owned_fd.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    std::string name = (fs::temp_directory_path() / "motley-output-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }

  ~OutputFileTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string text_of(const char* name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  [[nodiscard]] int file_count() const {
    return static_cast<int>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, ReplacesAFileAndLeavesNothingBeside) {
  std::ofstream(folder_ / "page.html") << "old";
  std::ofstream(folder_ / "page.html.tmp") << "mine";
  ASSERT_TRUE(check_output(folder_ / "page.html").ok());
  EXPECT_EQ(text_of("page.html"), "old");
  ASSERT_TRUE(write_output(folder_ / "page.html", "new").ok());
  EXPECT_EQ(text_of("page.html"), "new");
  EXPECT_EQ(text_of("page.html.tmp"), "mine");
  EXPECT_EQ(file_count(), 2);
}

TEST_F(OutputFileTest, FollowsALink) {
  fs::create_directory(folder_ / "far");
  std::ofstream(folder_ / "far/page.html") << "old";
  fs::create_symlink("far/page.html", folder_ / "page.html");
  ASSERT_TRUE(write_output(folder_ / "page.html", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "page.html"));
  EXPECT_EQ(text_of("far/page.html"), "new");
}

TEST_F(OutputFileTest, WritesToWhatIsNoFileAndLeavesItThere) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const OwnedFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(check_output(pipe).ok());
  ASSERT_TRUE(write_output(pipe, "text").ok());
  char read[8] = {};
  EXPECT_EQ(::read(reader.get(), read, sizeof read), 4);
  EXPECT_STREQ(read, "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(file_count(), 1);
}

TEST_F(OutputFileTest, SpeaksOfTheNameThatWasGiven) {
  const auto checked = check_output(folder_ / "none/page.html");
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().what, HasSubstr("none/page.html"));
  EXPECT_THAT(checked.error().what, Not(HasSubstr("/.page.html")));
}

}  // namespace
}  // namespace motley

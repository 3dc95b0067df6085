// Error messages for files that cannot be read or written.
#include "base/system/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    std::string name = (fs::temp_directory_path() / "motley-files-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }

  ~FilesTest() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(FilesTest, AFileInPlaceOfAFolderIsToBePutAway) {
  std::ofstream(folder_ / "checkpoints") << "notes";
  for (const char* path : {"checkpoints", "checkpoints/step-000010"}) {
    const Result<void> made = make_folders(folder_ / path);
    ASSERT_FALSE(made.ok()) << path;
    EXPECT_THAT(made.error().remedy, HasSubstr("move it away")) << path;
  }
}

TEST_F(FilesTest, AFolderInPlaceOfAFileIsToBePutAway) {
  fs::create_directory(folder_ / "model");
  const Result<void> written = write_file_atomic(folder_ / "model", "text");
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().remedy, HasSubstr("move it away"));
  EXPECT_FALSE(fs::exists(folder_ / "model.tmp"));
  const Result<std::string> read = read_file(folder_ / "model");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().remedy, HasSubstr("move it away"));
}

TEST_F(FilesTest, APipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const Result<std::string> read = read_file(folder_ / "pipe");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().cause, HasSubstr("a pipe"));
  ASSERT_EQ(::mkfifo((folder_ / "plan.json.tmp").c_str(), 0600), 0);
  EXPECT_FALSE(write_file_atomic(folder_ / "plan.json", "text").ok());
}

TEST_F(FilesTest, AnInputMayBeAPipe) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "text"; });
  const Result<std::string> read = read_input(pipe, 10);
  writer.join();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, "text");
}

TEST_F(FilesTest, NothingIsWrittenThroughALink) {
  std::ofstream(folder_ / "notes") << "mine";
  fs::create_symlink(folder_ / "notes", folder_ / "plan.json.tmp");
  const Result<void> written = write_file_atomic(folder_ / "plan.json", "text");
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().remedy, HasSubstr("symbolic link"));
  EXPECT_EQ(*read_file(folder_ / "notes"), "mine");
}

TEST_F(FilesTest, NothingButARegularFileIsOpenedAsOne) {
  std::ofstream(folder_ / "notes") << "mine";
  fs::create_symlink(folder_ / "notes", folder_ / "link");
  fs::create_symlink(folder_ / "nothing", folder_ / "dangling");
  fs::create_directory(folder_ / "folder");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "dangling", "folder", "pipe"}) {
    for (const int flags : {O_RDONLY, O_WRONLY | O_CREAT | O_APPEND}) {
      const Result<OwnedFd> fd = open_regular_file(folder_ / name, flags);
      ASSERT_FALSE(fd.ok()) << name;
      EXPECT_EQ(fd.error().cause, "it is not a regular file") << name;
    }
  }
  EXPECT_FALSE(fs::exists(folder_ / "nothing"));
  EXPECT_TRUE(open_regular_file(folder_ / "notes", O_WRONLY).ok());
  EXPECT_FALSE(open_regular_file(folder_ / "new", O_WRONLY).ok());
  EXPECT_TRUE(open_regular_file(folder_ / "new", O_WRONLY | O_CREAT).ok());
}

// Opening a pipe for writing succeeds while another process reads it.
TEST_F(FilesTest, APipeThatSomebodyReadsIsNoRegularFile) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const OwnedFd reader(::open((folder_ / "pipe").c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(reader.open());
  EXPECT_FALSE(open_regular_file(folder_ / "pipe", O_WRONLY).ok());
}

}  // namespace
}  // namespace motley

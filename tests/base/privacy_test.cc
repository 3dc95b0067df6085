#include "base/system/privacy.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "base/system/files.h"

namespace motley {
namespace {

// Runs in a child process, because the tested functions change the whole process.
bool holds_in_child(const std::function<bool()>& claim) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(claim() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

mode_t rights_of(const std::filesystem::path& path) {
  struct stat info {};

  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 0777;
}

class KeepFilesPrivate : public testing::Test {
 protected:
  KeepFilesPrivate() {
    std::string name = (std::filesystem::temp_directory_path() / "motley-private-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }

  ~KeepFilesPrivate() override { std::filesystem::remove_all(folder_); }

  // Whether a file and a folder created in a folder with these `rights` get these modes, with
  // umask 0.
  [[nodiscard]] bool gives(mode_t rights, mode_t file, mode_t folder) const {
    return holds_in_child([&] {
      ::chmod(folder_.c_str(), rights);
      ::umask(0);
      keep_files_private(folder_);
      return write_file_atomic(folder_ / "file", "text").ok() &&
             make_folders(folder_ / "folder").ok() && rights_of(folder_ / "file") == file &&
             rights_of(folder_ / "folder") == folder;
    });
  }

  std::filesystem::path folder_;
};

TEST_F(KeepFilesPrivate, InAPrivateFolder) {
  EXPECT_TRUE(gives(0700, 0600, 0700));
}

TEST_F(KeepFilesPrivate, FromAllButTheGroupThatTheFolderIsSharedWith) {
  EXPECT_TRUE(gives(0750, 0640, 0750));
}

TEST_F(KeepFilesPrivate, FromEverybodyElseWhateverTheFolderSays) {
  EXPECT_TRUE(gives(0777, 0640, 0770));
}

TEST_F(KeepFilesPrivate, WhereThereIsNoFolderYet) {
  EXPECT_TRUE(holds_in_child([&] {
    ::umask(0);
    keep_files_private(folder_ / "run");
    return make_folders(folder_ / "run").ok() && rights_of(folder_ / "run") == 0700;
  }));
}

TEST(ForbidCoreDumps, LeavesNoRoomForOne) {
  EXPECT_TRUE(holds_in_child([] {
    forbid_core_dumps();
    forbid_core_dumps();
    rlimit limit{};
    return ::getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur <= 1 && limit.rlim_max <= 1;
  }));
}

}  // namespace
}  // namespace motley

// The receiver's disk: a file is acknowledged only once the disk holds it.
//
// The functions below replace the C library's in the whole program, so the code under test needs
// no seam.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include <gmock/gmock.h>

#include "tests/checkpoint/transfer_fixture.h"

namespace {

// For files named "target".
std::atomic<long> capacity_bytes{1L << 40};
std::atomic<long> unsynced_bytes{0};

bool is_target(int fd) {
  std::string path(4096, '\0');
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length > 0 && path.substr(0, static_cast<std::size_t>(length)).ends_with("/target");
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t count) {
  const bool counts = is_target(fd);
  if (counts && capacity_bytes < static_cast<long>(count)) {
    errno = ENOSPC;
    return -1;
  }
  const ssize_t written = ::syscall(SYS_write, fd, bytes, count);
  if (counts && written > 0) {
    capacity_bytes -= written;
    unsynced_bytes += written;
  }
  return written;
}

int fdatasync(int fd) {
  if (is_target(fd)) unsynced_bytes = 0;
  return 0;
}

}  // extern "C"

namespace motley {
namespace {

using testing::bytes_of_size;
using testing::GivenFile;
using testing::RankPair;
using testing::read_bytes;
using testing::some_tensors;
using testing::TempFolder;

TEST(FileTransferDisk, TellsBothEndsThatItIsFull) {
  RankPair ranks("inproc");
  const TempFolder folder;
  const GivenFile file(folder.path(), "file", bytes_of_size(20'000));
  for (const long capacity : {0L, 999L, 1000L, 10'500L, 19'999L}) {
    capacity_bytes = capacity;
    const auto outcome = ranks.give(file, folder.path() / "target");
    EXPECT_CORRUPT(outcome.received, "No space left on device");
    EXPECT_CORRUPT(outcome.sent, "No space left on device");
    EXPECT_CORRUPT(outcome.sent, "free space on the disk that holds " + folder.path().string());
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "target")) << capacity;
  }
  capacity_bytes = 20'000;
  const auto outcome = ranks.give(file, folder.path() / "target");
  EXPECT_OK(outcome.sent);
  EXPECT_OK(outcome.received);
}

TEST(FileTransferDisk, TellsBothEndsThatItIsFullOfTensors) {
  RankPair ranks("inproc");
  const TempFolder folder;
  const GivenFile file(folder.path(), some_tensors(), {{"m", "z"}});
  for (const long capacity : {0L, 600L, 1500L, 10'000L}) {
    capacity_bytes = capacity;
    const auto outcome = ranks.give(file, folder.path() / "target");
    EXPECT_CORRUPT(outcome.received, "No space left on device");
    EXPECT_CORRUPT(outcome.sent, "No space left on device");
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "target")) << capacity;
  }
}

TEST(FileTransferDisk, HoldsAllWhenTheSenderHearsOfIt) {
  capacity_bytes = 1L << 40;
  RankPair ranks("inproc");
  const TempFolder folder;
  const GivenFile file(folder.path(), "file", bytes_of_size(20'000));
  ranks.group().run([&](Rank self) {
    FrameLink link = ranks.link(self);
    if (self == testing::kGiver) {
      EXPECT_OK(send_file(link, testing::kTaker, file.order, file.path, testing::kSmallParts,
                          StallTimeout(20), {}, nullptr));
      EXPECT_EQ(unsynced_bytes, 0);
    } else {
      EXPECT_OK(receive_file(link, testing::kGiver, file.order, folder.path() / "target",
                             testing::kSmallParts, StallTimeout(20), {}, nullptr));
    }
  });
}

}  // namespace
}  // namespace motley

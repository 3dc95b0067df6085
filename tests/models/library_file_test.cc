// A truncated library is detected before the loader crashes on it.
#include "models/device/kinds/library_file.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/device/compute_device.h"

namespace motley {
namespace {

class LibraryFile : public testing::Test {
 protected:
  ~LibraryFile() override { std::filesystem::remove(copy_); }

  // A copy of the far device's library, truncated to this size.
  void cut(std::uintmax_t bytes) const {
    std::filesystem::copy_file(MOTLEY_FAR_LIBRARY, copy_,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(copy_, bytes);
  }

  [[nodiscard]] Result<ComputeDevice> open_by_copy() const {
    ::setenv("MOTLEY_DEVICE_LIBRARY", copy_.c_str(), /*overwrite=*/1);
    auto device = ComputeDevice::open("privateuseone:0");
    ::unsetenv("MOTLEY_DEVICE_LIBRARY");
    return device;
  }

  const std::uintmax_t bytes_ = std::filesystem::file_size(MOTLEY_FAR_LIBRARY);
  const std::filesystem::path copy_ = testing::TempDir() + "/motley-cut-library.so";
};

TEST_F(LibraryFile, IsWholeOrLacksItsEnd) {
  cut(bytes_);
  EXPECT_FALSE(is_truncated(copy_));
  // More than half of the file may be debug information, after everything that is loaded.
  for (const std::uintmax_t bytes : {bytes_ / 10, bytes_ / 20, std::uintmax_t{100}}) {
    cut(bytes);
    EXPECT_TRUE(is_truncated(copy_)) << bytes;
  }
}

// For other files the loader's own message is better.
TEST_F(LibraryFile, OnlyLibrariesAreJudged) {
  cut(10);
  EXPECT_FALSE(is_truncated(copy_));
  std::ofstream(copy_) << "no library at all";
  EXPECT_FALSE(is_truncated(copy_));
  EXPECT_FALSE(is_truncated("/no/such/library.so"));
  EXPECT_FALSE(is_truncated("/"));
}

TEST_F(LibraryFile, OneThatLacksItsEndBringsNoDevice) {
  cut(bytes_ / 10);
  const auto device = open_by_copy();
  ASSERT_FALSE(device.ok());
  EXPECT_THAT(device.error().cause,
              testing::AllOf(testing::HasSubstr(copy_.string()), testing::HasSubstr("too short")));
}

TEST_F(LibraryFile, NobodyWaitsForAWriterOfANamedPipe) {
  ASSERT_EQ(::mkfifo(copy_.c_str(), 0600), 0);
  const auto device = open_by_copy();
  ASSERT_FALSE(device.ok());
  EXPECT_THAT(device.error().cause, testing::HasSubstr(copy_.string() + " is not a file"));
}

}  // namespace
}  // namespace motley

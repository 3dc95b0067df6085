#include "profiling/measurement_lock.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace motley {
namespace {

constexpr double kShort_s = 0.05;

class MeasurementLockTest : public testing::Test {
 protected:
  MeasurementLockTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("motley-lock-" + std::to_string(::getpid()))) {}

  ~MeasurementLockTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(MeasurementLockTest, ManyMayMeasureBesideEachOther) {
  MeasurementLock one(folder_);
  MeasurementLock other(folder_);
  EXPECT_TRUE(one.lock_shared_for(kShort_s));
  EXPECT_TRUE(other.lock_shared_for(kShort_s));
}

TEST_F(MeasurementLockTest, OneIsAloneOnlyOnceTheOthersAreDone) {
  MeasurementLock one(folder_);
  int waits = 0;
  {
    MeasurementLock other(folder_);
    EXPECT_TRUE(other.lock_shared_for(kShort_s));
    EXPECT_FALSE(one.lock_exclusive_for(kShort_s, [&] { ++waits; }));
    EXPECT_GT(waits, 0);
  }
  EXPECT_TRUE(one.lock_exclusive_for(kShort_s));
  MeasurementLock late(folder_);
  EXPECT_FALSE(late.lock_shared_for(kShort_s));
}

TEST_F(MeasurementLockTest, WithoutAFolderNobodyWaits) {
  MeasurementLock one("");
  EXPECT_FALSE(one.lock_shared_for(1e9));
  EXPECT_FALSE(one.lock_exclusive_for(1e9));
}

TEST_F(MeasurementLockTest, RemovesFilesThatNobodyHasTouchedForLong) {
  std::filesystem::create_directories(folder_);
  const auto now = std::filesystem::file_time_type::clock::now();
  const auto touched_before = [&](const char* name, std::chrono::days age) {
    std::ofstream(folder_ / name) << "";
    std::filesystem::last_write_time(folder_ / name, now - age);
    return folder_ / name;
  };
  const auto old = touched_before(".measuring-1", std::chrono::days(31));
  const auto recent = touched_before(".measuring-2", std::chrono::days(1));
  const auto profile = touched_before("profile", std::chrono::days(31));
  const MeasurementLock lock(folder_);
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(recent));
  EXPECT_TRUE(std::filesystem::exists(profile));
}

}  // namespace
}  // namespace motley

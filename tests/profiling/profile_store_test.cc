#include "profiling/cache/profile_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/fuzz/kept_profile_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

using testing::HasSubstr;

ProfileKey key() {
  return right_key();
}

StoredProfile profile(double forward_s = 0.25) {
  StoredProfile stored = right_stored_profile();
  stored.device.layers["gpt2.mlp(32)"].front().forward_s = forward_s;
  return stored;
}

class MachineStore : public testing::Test {
 protected:
  MachineStore() {
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("motley-store-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
  }

  ~MachineStore() override { std::filesystem::remove_all(folder_); }

  void damage(const std::string& text) const {
    std::ofstream(store().path_of(key()), std::ios::trunc) << text;
  }

  [[nodiscard]] ProfileStore store() const { return ProfileStore(folder_ / "profiles"); }

  std::filesystem::path folder_;
};

TEST_F(MachineStore, FindsWhatWasKept) {
  ASSERT_TRUE(store().put(key(), profile()).ok());
  const auto found = store().find(key());
  ASSERT_TRUE(found.profile.has_value()) << found.problem;
  EXPECT_EQ(found.profile->seconds, 40);
  EXPECT_EQ(found.profile->smallest, 2);
  EXPECT_EQ(found.profile->largest, 16);
  EXPECT_EQ(found.profile->device.layers, profile().device.layers);
}

TEST_F(MachineStore, FindsNothingWhereAnythingOfTheKeyDiffers) {
  ASSERT_TRUE(store().put(key(), profile()).ok());
  std::vector<ProfileKey> others(8, key());
  others[0].device = "virtual";
  others[1].processor = "AMD EPYC, 26";
  others[2].threads = 3;
  others[3].cores = 0.25;
  others[4].libraries.back() = "LibTorch 2.6.0";
  others[5].optimizer = "sgd";
  others[6].transport = "auto, plain";
  others[7].elsewhere_bytes *= 2;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto found = store().find(others[i]);
    EXPECT_FALSE(found.profile.has_value()) << i;
    EXPECT_EQ(found.problem, "") << i;
  }
}

TEST(StoredProfileServes, SizesBetweenThoseAskedForAndNoMoreTime) {
  EXPECT_TRUE(serves(profile(), {2, 16}, 40));
  EXPECT_TRUE(serves(profile(), {5}, 10));
  EXPECT_FALSE(serves(profile(), {1, 4}, 40));
  EXPECT_FALSE(serves(profile(), {4, 32}, 40));
  EXPECT_FALSE(serves(profile(), {4}, 41));
  StoredProfile far = profile();  // its first check would take more memory than the requested one
  for (auto& [signature, samples] : far.device.layers) samples = {{.micro_batch = 1 << 24}};
  far.largest = 1 << 24;
  EXPECT_FALSE(serves(far, {2, 16}, 40));
}

// As after a collision of two keys' hashes.
TEST_F(MachineStore, TakesNoFileOfAnotherKey) {
  ProfileKey other = key();
  other.threads = 8;
  ASSERT_TRUE(store().put(other, profile()).ok());
  std::filesystem::rename(store().path_of(other), store().path_of(key()));
  const auto found = store().find(key());
  EXPECT_FALSE(found.profile.has_value());
  EXPECT_THAT(found.problem, HasSubstr("of another device, library or model"));
}

TEST_F(MachineStore, TakesNoProfileOfAnotherThanItsKey) {
  std::vector<StoredProfile> others(3, profile());
  others[0].device.precision = "bf16";
  others[1].device.device = "cuda:0";
  others[2].device.threads = 1;
  for (std::size_t i = 0; i < others.size(); ++i) {
    ASSERT_TRUE(store().put(key(), others[i]).ok());
    const auto found = store().find(key());
    EXPECT_FALSE(found.profile.has_value()) << i;
    EXPECT_THAT(found.problem, HasSubstr("than its key")) << i;
  }
}

TEST_F(MachineStore, ADamagedFileCountsAsNone) {
  ASSERT_TRUE(store().put(key(), profile()).ok());
  std::ifstream in(store().path_of(key()));
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"), std::string("{}"),
        std::string(100'000, '['), std::string("\xff\xfe\0", 3)}) {
    damage(text);
    const auto found = store().find(key());
    EXPECT_FALSE(found.profile.has_value()) << text.substr(0, 40);
    EXPECT_NE(found.problem, "") << text.substr(0, 40);
  }
}

TEST_F(MachineStore, WhatIsNoFileCountsAsNoneAndIsNotWaitedFor) {
  ASSERT_TRUE(store().put(key(), profile()).ok());
  const std::filesystem::path path = store().path_of(key());
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(store().find(key()).problem, HasSubstr("is not a file"));
  ASSERT_TRUE(store().put(key(), profile()).ok());
  EXPECT_TRUE(store().find(key()).profile.has_value());
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THAT(store().find(key()).problem, HasSubstr("is not a file"));
}

TEST_F(MachineStore, AFolderThatCannotBeMadeKeepsNothing) {
  std::ofstream(folder_) << "a file";
  EXPECT_FALSE(store().put(key(), profile()).ok());
  EXPECT_FALSE(store().find(key()).profile.has_value());
}

TEST_F(MachineStore, WithoutAFolderKeepsNothing) {
  EXPECT_FALSE(ProfileStore("").keeps());
  EXPECT_TRUE(store().keeps());
  const ProfileStore none("");
  EXPECT_TRUE(none.put(key(), profile()).ok());
  EXPECT_FALSE(none.find(key()).profile.has_value());
}

TEST_F(MachineStore, SeveralMayKeepTheSameAtOnce) {
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < 4; ++writer) {
      writers.emplace_back([this, writer] {
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(store().put(key(), profile(1 + writer)).ok());
      });
    }
    for (int i = 0; i < 50; ++i) EXPECT_EQ(store().find(key()).problem, "");
  }
  EXPECT_TRUE(store().find(key()).profile.has_value());
  const std::filesystem::directory_iterator files(folder_ / "profiles");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "something half-written is left";
}

TEST_F(MachineStore, TheOldestGoWhereTheyAreTooMany) {
  for (int i = 0; i < static_cast<int>(ProfileStore::kFilesMax) + 3; ++i) {
    ProfileKey one = key();
    one.threads = 10 + i;
    ASSERT_TRUE(store().put(one, profile()).ok());
    const auto age = std::chrono::hours(100 - i);
    std::filesystem::last_write_time(store().path_of(one),
                                     std::filesystem::file_time_type::clock::now() - age);
  }
  const std::filesystem::directory_iterator files(folder_ / "profiles");
  EXPECT_EQ(std::distance(begin(files), end(files)),
            static_cast<std::ptrdiff_t>(ProfileStore::kFilesMax));
}

TEST(ProfileFolder, FollowsTheEnvironment) {
  EXPECT_EQ(profile_folder("/cache", "/home/me"), "/cache/motley/profiles");
  EXPECT_EQ(profile_folder(nullptr, "/home/me"), "/home/me/.cache/motley/profiles");
  EXPECT_EQ(profile_folder("", "/home/me"), "/home/me/.cache/motley/profiles");
  EXPECT_EQ(profile_folder("relative", "/home/me"), "/home/me/.cache/motley/profiles");
  EXPECT_EQ(profile_folder(nullptr, nullptr), "");
}

RC_GTEST_PROP(DamagedFile, OfAKeptProfileIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_stored_profile(right_stored_text()) == "");
  RC_ASSERT(wrong_with_stored_profile(damaged(right_stored_text(), fragments_of_text())) == "");
}

}  // namespace
}  // namespace motley

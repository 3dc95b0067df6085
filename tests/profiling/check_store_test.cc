#include "profiling/cache/check_store.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"
#include "tests/fuzz/kept_profile_laws.h"

namespace motley {
namespace {

using testing::IsEmpty;

const std::set<std::string> kLayers = {"0a1b", "2c3d"};

CheckKey right_check() {
  return check_key(right_key(), std::string(64, 'a'), std::string(32, 'b'));
}

class Checks : public testing::Test {
 protected:
  Checks()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("motley-checks-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
  }

  ~Checks() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(Checks, AreFoundAgain) {
  const CheckStore store(folder_);
  EXPECT_THAT(store.find(right_check()), IsEmpty());
  ASSERT_TRUE(store.put(right_check(), kLayers).ok());
  EXPECT_EQ(store.find(right_check()), kLayers);
}

TEST_F(Checks, AreOfOnePackageDeviceLibraryAndNumberType) {
  const CheckStore store(folder_);
  ASSERT_TRUE(store.put(right_check(), kLayers).ok());
  std::vector<CheckKey> others(7, right_check());
  others[0].package[3] = 'f';
  others[1].reference[3] = 'f';
  others[2].device = "cuda:0";
  others[3].processor += "6";
  others[4].threads = 3;
  others[5].libraries.back() = "LibTorch 2.6.0";
  others[6].compute_dtype = "bf16";
  for (const CheckKey& other : others) EXPECT_THAT(store.find(other), IsEmpty());
}

TEST_F(Checks, ThatAreDamagedCountAsNone) {
  const CheckStore store(folder_);
  ASSERT_TRUE(store.put(right_check(), kLayers).ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "checks")) {
    std::ofstream(entry.path(), std::ios::trunc) << "{\"format\": \"motley.kept-check\"";
  }
  EXPECT_THAT(store.find(right_check()), IsEmpty());
  ASSERT_TRUE(store.put(right_check(), kLayers).ok());
  EXPECT_EQ(store.find(right_check()), kLayers);
}

TEST_F(Checks, OfAnotherKeyAreRefused) {
  const std::string text = stored_check_to_json(right_check(), kLayers).dump();
  EXPECT_TRUE(parse_stored_check(text, right_check(), "c.json").ok());
  CheckKey other = right_check();
  other.compute_dtype = "bf16";
  EXPECT_FALSE(parse_stored_check(text, other, "c.json").ok());
}

TEST(ChecksWithoutAFolder, AreNotKept) {
  const CheckStore store({});
  EXPECT_TRUE(store.put(right_check(), kLayers).ok());
  EXPECT_THAT(store.find(right_check()), IsEmpty());
}

}  // namespace
}  // namespace motley

// A save of three ranks, as threads.
#include "worker/save_shard.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include <gmock/gmock.h>

#include "tests/support/rank_group.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 3;
constexpr const char* kLaunch = "000003-0123456789abcdef";

// More than any disk holds, and none of it touched.
class EndlessFloats {
 public:
  EndlessFloats() : floats_(::mmap(nullptr, kBytes, PROT_NONE, kFlags, -1, 0)) {
    EXPECT_NE(floats_, MAP_FAILED);
  }

  ~EndlessFloats() { ::munmap(floats_, kBytes); }

  EndlessFloats(const EndlessFloats&) = delete;
  EndlessFloats& operator=(const EndlessFloats&) = delete;

  [[nodiscard]] TensorView moment() const {
    return {"exp_avg/w1",
            {std::int64_t{kBytes / sizeof(float)}},
            {static_cast<const float*>(floats_), kBytes / sizeof(float)}};
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 45;
  static constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

  void* floats_;
};

class SaveShard : public testing::Test {
 protected:
  using Results = std::vector<std::optional<Result<Shard>>>;  // [Rank]

  SaveShard() : group_("inproc", kRanks) {
    std::string name = (std::filesystem::temp_directory_path() / "motley-save-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }

  ~SaveShard() override { std::filesystem::remove_all(dir_); }

  // Each rank saves one parameter of four values, rank 1 these, and the moments.
  Results save(const std::vector<float>& values, const std::vector<TensorView>& moments) {
    Results results(kRanks);
    group_.run([&](Rank self) {
      FrameLink link(group_.at(self), self, 1, 2);
      const std::vector<float> plain(4, 1.5F);
      const bool is_odd = self == Rank{1};
      const TensorView parameter{
          "w" + std::to_string(self.value), {4}, is_odd ? std::span(values) : std::span(plain)};
      results[self.index()] =
          save_shard({dir_, kLaunch, 10}, self, kRanks, link, soon(), {parameter},
                     is_odd ? moments : std::vector<TensorView>(), nullptr);
    });
    return results;
  }

  [[nodiscard]] std::filesystem::path partial() const {
    return partial_folder({dir_, kLaunch, 10});
  }

  RankGroup group_;
  std::filesystem::path dir_;
  const std::vector<float> fine_ = {1, 2, 3, 4};
};

TEST_F(SaveShard, WritesThePartsOfAllRanks) {
  for (const auto& shard : save(fine_, {})) EXPECT_TRUE(shard->ok());
  EXPECT_TRUE(std::filesystem::exists(partial() / "model-00003-of-00003.safetensors"));
}

TEST_F(SaveShard, IsLeftByAllRanksWhereTheDiskHasNoRoomForOne) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer leaves no room for a mapping of 32 TiB";
#endif
  const EndlessFloats endless;
  for (const auto& shard : save(fine_, {endless.moment()})) {
    ASSERT_FALSE(shard->ok());
    EXPECT_EQ(shard->error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(shard->error().what, HasSubstr("step-000010"));
    EXPECT_THAT(shard->error().cause, HasSubstr("3 ranks need"));
  }
  EXPECT_FALSE(std::filesystem::exists(partial()));
}

TEST_F(SaveShard, FailsOnlyWhereADiskDoesNotTakeIt) {
  // A folder stands where rank 1 writes.
  std::filesystem::create_directories(partial() / "model-00002-of-00003.safetensors");
  const Results results = save(fine_, {});
  EXPECT_TRUE(results[0]->ok());
  ASSERT_FALSE(results[1]->ok());
  EXPECT_EQ(results[1]->error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(results[2]->ok());
}

TEST_F(SaveShard, WritesNoParameterThatIsNotFinite) {
  const Results results = save({1, 2, std::numeric_limits<float>::infinity(), 4}, {});
  ASSERT_FALSE(results[1]->ok());
  EXPECT_EQ(results[1]->error().code, ErrorCode::kDiverged);
  EXPECT_FALSE(std::filesystem::exists(partial() / "model-00002-of-00003.safetensors"));
}

}  // namespace
}  // namespace motley

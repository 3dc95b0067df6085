// Writing a shard while other code changes its arrays.
#include "checkpoint/save/shard_writer.h"

#include <filesystem>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include <gmock/gmock.h>

#include "tests/checkpoint/fixture.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using ::testing::HasSubstr;
using testing::TempFolder;
using testing::views;

constexpr std::uint64_t kAllMemory = std::numeric_limits<std::uint64_t>::max();

std::vector<OwnedTensor> tensors_of(const std::string& prefix, const std::vector<int>& sizes) {
  std::vector<OwnedTensor> tensors;
  float value = 1;
  for (const int size : sizes) {
    OwnedTensor tensor{prefix + std::to_string(tensors.size()), {size}, {}};
    for (int i = 0; i < size; ++i) tensor.values.push_back(value += 0.5F);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

void spoil(std::vector<OwnedTensor>& tensors) {
  for (OwnedTensor& tensor : tensors) tensor.values.assign(tensor.values.size(), -1);
}

void expect_same(const Shard& found, const Shard& expected) {
  EXPECT_EQ(found.rank, expected.rank);
  for (const auto file : {&Shard::model, &Shard::optimizer}) {
    EXPECT_EQ((found.*file).name, (expected.*file).name);
    EXPECT_EQ((found.*file).bytes, (expected.*file).bytes);
    EXPECT_EQ((found.*file).hash, (expected.*file).hash);
    EXPECT_EQ((found.*file).tensor_hashes, (expected.*file).tensor_hashes);
  }
}

// The expected shard of a save of these tensors.
Shard written_plainly(const std::vector<OwnedTensor>& parameters,
                      const std::vector<OwnedTensor>& moments) {
  const TempFolder folder;
  const auto shard = write_shard({folder.path(), "", 7}, 1, 2, views(parameters), views(moments));
  MOTLEY_CHECK(shard.ok(), "{}", describe(shard.error()));
  return *shard;
}

// One save and its reported result.
class Saved {
 public:
  [[nodiscard]] SaveLocation location() const { return {folder_.path(), "", 7}; }

  [[nodiscard]] ShardWriter::Done done() {
    return [this](const Result<Shard>& shard) {
      const std::lock_guard lock(mutex_);
      reported_.push_back(shard);
    };
  }

  // REQUIRES: the save has ended.
  [[nodiscard]] Result<Shard> only() {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(reported_.size(), 1U);
    return reported_.at(0);
  }

  [[nodiscard]] std::size_t count() {
    const std::lock_guard lock(mutex_);
    return reported_.size();
  }

 private:
  TempFolder folder_;
  std::mutex mutex_;
  std::vector<Result<Shard>> reported_;
};

// For any sizes and any amount of copied data: the lent values are written, although they change
// as soon as this is permitted.
RC_GTEST_PROP(ShardWriter, WritesWhatItWasLent, ()) {
  const auto sizes = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 700'000));
  const auto spare = *rc::gen::element<std::uint64_t>(0, 100'000, 1'000'000, kAllMemory);
  auto parameters = tensors_of("w", sizes);
  auto moments = tensors_of("exp_avg/w", sizes);
  const auto residuals = tensors_of("residual.1/w", sizes);
  auto all_moments = moments;
  all_moments.insert(all_moments.end(), residuals.begin(), residuals.end());
  const Shard expected = written_plainly(parameters, all_moments);
  Saved saved;
  ShardWriter writer([&] { return spare; }, nullptr);
  writer.begin(saved.location(), 1, 2, {views(parameters), views(moments), residuals},
               saved.done());
  writer.copy_unwritten();
  spoil(parameters);
  spoil(moments);
  writer.finish();
  const Result<Shard> shard = saved.only();
  RC_ASSERT(shard.ok());
  expect_same(*shard, expected);
}

TEST(ShardWriter, TellsOfADiskThatDoesNotTakeIt) {
  Saved saved;
  auto parameters = tensors_of("w", {1'000'000, 1'000'000});
  std::filesystem::create_directories(partial_folder(saved.location()) /
                                      "model-00002-of-00002.safetensors");
  ShardWriter writer([] { return std::uint64_t{0}; }, nullptr);
  writer.begin(saved.location(), 1, 2, {views(parameters), {}, {}}, saved.done());
  writer.copy_unwritten();  // does not wait for data that will not be written
  writer.finish();
  const Result<Shard> shard = saved.only();
  ASSERT_FALSE(shard.ok());
  EXPECT_EQ(shard.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(shard.error().what, HasSubstr("model-00002-of-00002.safetensors"));
}

TEST(ShardWriter, WritesOneAfterTheOther) {
  Saved first;
  Saved second;
  const auto some = tensors_of("w", {2'000'000});
  const auto others = tensors_of("v", {3, 5});
  ShardWriter writer([] { return std::uint64_t{0}; }, nullptr);
  writer.begin(first.location(), 1, 2, {views(some), {}, {}}, first.done());
  writer.begin(second.location(), 1, 2, {views(others), {}, {}}, second.done());
  EXPECT_EQ(first.count(), 1U);
  writer.finish();
  const Result<Shard> shard = second.only();
  ASSERT_TRUE(shard.ok()) << describe(shard.error());
  expect_same(*shard, written_plainly(others, {}));
}

// Lent data may be freed together with it: under AddressSanitizer this shows that nothing reads it
// any more.
TEST(ShardWriter, GivesUpWhereItGoes) {
  Saved saved;
  for (int round = 0; round < 20; ++round) {
    const auto parameters = tensors_of("w", {300'000, 300'000});
    ShardWriter writer([] { return kAllMemory; }, nullptr);
    writer.begin(saved.location(), 1, 2, {views(parameters), {}, {}}, saved.done());
  }
  EXPECT_LE(saved.count(), 20U);
}

TEST(ShardWriter, MakesNoRunThatIsGone) {
  const TempFolder folder;
  const SaveLocation location{folder.path() / "moved", "", 7};
  std::optional<Result<Shard>> reported;
  ShardWriter writer([] { return kAllMemory; }, nullptr);
  writer.begin(location, 0, 1, {}, [&reported](const Result<Shard>& shard) { reported = shard; });
  writer.finish();
  ASSERT_TRUE(reported && !reported->ok());
  EXPECT_THAT(reported->error().cause, HasSubstr("no longer exists"));
  EXPECT_FALSE(std::filesystem::exists(location.run_dir));
}

}  // namespace
}  // namespace motley

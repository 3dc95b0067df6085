#include "checkpoint/convert/reshard.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/json.h"
#include "checkpoint/convert/tensor_writer.h"
#include "checkpoint/manifest.h"
#include "tests/checkpoint/convert_fixture.h"
#include "tests/checkpoint/golden_checkpoint.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using testing::Allowance;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_in;
using testing::TestRun;

const std::vector<std::string> kOrder = {"wte.weight", "h.0.ln_1.weight", "h.0.ln_1.bias",
                                         "ln_f.weight"};

Result<Manifest> reshard_into(const std::filesystem::path& from,
                              const std::filesystem::path& to,
                              int files) {
  Allowance watch;
  return reshard({from, to, files, kOrder}, watch);
}

std::map<std::string, std::string> all_hashes(const Manifest& manifest) {
  std::map<std::string, std::string> hashes;
  for (const WrittenFile& file : manifest.files)
    hashes.insert(file.tensor_hashes.begin(), file.tensor_hashes.end());
  return hashes;
}

TEST(Reshard, ThereAndBackIsTheSameToTheByte) {
  for (const int from : {1, 2, 3, 5}) {
    const TestRun run;
    const auto folder = run.save(20, from);
    ASSERT_OK(folder);
    const Manifest original = *read_manifest(*folder);
    for (const int files : {1, 2, 3, 4, 7}) {
      const auto there = run.dir() / fmt::format("there-{}", files);
      const auto back = run.dir() / fmt::format("back-{}", files);
      ASSERT_OK(reshard_into(*folder, there, files));
      EXPECT_OK(verify_checkpoint(there));
      const auto manifest = reshard_into(there, back, from);
      ASSERT_OK(manifest);
      EXPECT_OK(verify_checkpoint(back));
      EXPECT_EQ(manifest->parameter_hash, original.parameter_hash);
      EXPECT_EQ(all_hashes(*manifest), all_hashes(original));
      EXPECT_EQ(manifest->config, original.config);
      EXPECT_EQ(manifest->state.samples, original.state.samples);
      EXPECT_EQ(testing::read_bytes(back / "config.json"),
                testing::read_bytes(*folder / "config.json"));
    }
  }
}

// The residuals of ranks in version 1 become those of members, in the same order.
TEST(Reshard, WritesThePresentVersionOfAnyOther) {
  const std::map<std::string, std::string> present =
      testing::golden_checkpoint(kManifestVersion).hashes;
  for (int version = 1; version <= kManifestVersion; ++version) {
    const testing::TempFolder folder;
    const auto golden = testing::golden_checkpoint(version);
    ASSERT_OK(reshard_into(golden.folder(), folder.path() / "new", 2));
    EXPECT_OK(verify_checkpoint(folder.path() / "new"));
    const auto manifest = read_manifest(folder.path() / "new");
    ASSERT_OK(manifest);
    EXPECT_EQ(all_hashes(*manifest), present) << version;
  }
}

TEST(Reshard, WritesInTheModelsOrderWithMomentsBesideTheirParameters) {
  const TestRun run;
  ASSERT_OK(reshard_into(*run.save(20, 3), run.dir() / "new", 2));
  const auto reader = CheckpointReader::open(run.dir() / "new");
  ASSERT_OK(reader);
  std::vector<std::string> parameters;
  std::map<std::string, std::string> files;
  for (const StoredTensor& tensor : reader->tensors()) {
    const std::string name = tensor.outline.name.substr(tensor.outline.name.find('/') + 1);
    const std::string file = tensor.file.filename().string();
    const std::string number = file.substr(file.find('-'));
    EXPECT_EQ(files.emplace(name, number).first->second, number) << name;
    if (!tensor.of_optimizer) parameters.push_back(name);
  }
  EXPECT_EQ(parameters, kOrder);
}

TEST(Reshard, EvenCutsHaveTheLightestHeaviestPart) {
  EXPECT_TRUE(rc::check([] {
    const auto weights = *rc::gen::container<std::vector<std::uint64_t>>(
        *rc::gen::inRange<std::size_t>(0, 8), rc::gen::inRange<std::uint64_t>(0, 20));
    const int parts = *rc::gen::inRange(1, 5);
    const auto heaviest = [&](const std::vector<std::size_t>& ends) {
      std::uint64_t most = 0;
      std::size_t first = 0;
      for (const std::size_t end : ends) {
        std::uint64_t sum = 0;
        for (; first < end; ++first) sum += weights[first];
        most = std::max(most, sum);
      }
      return most;
    };
    const std::vector<std::size_t> ends = even_cuts(weights, parts);
    RC_ASSERT(static_cast<int>(ends.size()) == parts);
    RC_ASSERT(std::ranges::is_sorted(ends) && ends.back() == weights.size());
    // Compares with every other partition.
    std::vector<std::size_t> other(static_cast<std::size_t>(parts), weights.size());
    std::uint64_t best = heaviest(other);
    const std::function<void(std::size_t, std::size_t)> try_from = [&](std::size_t part,
                                                                       std::size_t first) {
      if (part + 1 == other.size()) {
        best = std::min(best, heaviest(other));
        return;
      }
      for (std::size_t end = first; end <= weights.size(); ++end) {
        other[part] = end;
        try_from(part + 1, end);
      }
    };
    try_from(0, 0);
    RC_ASSERT(heaviest(ends) == best);
  }));
}

TEST(Reshard, LeavesNothingWhereAnythingIsDamaged) {
  const TestRun run;
  const auto folder = run.save(20, 2);
  ASSERT_OK(folder);
  for (const std::string& name : names_in(*folder)) {
    const std::string right = testing::read_bytes(*folder / name);
    for (const std::size_t at : {std::size_t{9}, right.size() / 2, right.size() - 2}) {
      std::string wrong = right;
      wrong[at] = static_cast<char>(wrong[at] ^ 1);
      testing::write_bytes(*folder / name, wrong);
      EXPECT_CORRUPT(reshard_into(*folder, run.dir() / "new", 1), name);
      EXPECT_THAT(names_in(run.dir()), ElementsAre("checkpoints"));
    }
    testing::write_bytes(*folder / name, right);
  }
  EXPECT_OK(reshard_into(*folder, run.dir() / "new", 1));
}

TEST(Reshard, FollowsNoLinkInTheCheckpoint) {
  const TestRun run;
  const auto folder = run.save(20, 1);
  ASSERT_OK(folder);
  for (const std::string& name : names_in(*folder)) {
    std::filesystem::rename(*folder / name, run.dir() / name);
    std::filesystem::create_symlink(run.dir() / name, *folder / name);
    EXPECT_CORRUPT(reshard_into(*folder, run.dir() / "new", 1), "symbolic link");
    std::filesystem::remove(*folder / name);
    std::filesystem::rename(run.dir() / name, *folder / name);
  }
}

TEST(Reshard, EndedAtAnyPieceLeavesNothing) {
  const TestRun run;
  const auto folder = run.save(20, 2);
  ASSERT_OK(folder);
  int pieces = 0;
  for (bool done = false; !done; ++pieces) {
    Allowance watch(pieces);
    const auto outcome = reshard({*folder, run.dir() / "new", 2, kOrder}, watch);
    done = outcome.ok();
    if (done) break;
    EXPECT_EQ(outcome.error().code, ErrorCode::kInterrupted);
    EXPECT_THAT(names_in(run.dir()), ElementsAre("checkpoints"));
  }
  EXPECT_GT(pieces, 8);
}

// However many files there are, and however small they are.
TEST(Reshard, AsksBeforeEachFileWhetherToGoOn) {
  constexpr int kFiles = 50;  // of four tensors
  const TestRun run;
  const auto folder = run.save(20, 1);
  ASSERT_OK(folder);
  const auto is_done_within = [&](int pieces, const std::string& name) {
    Allowance watch(pieces);
    return reshard({*folder, run.dir() / name, kFiles, kOrder}, watch).ok();
  };
  EXPECT_FALSE(is_done_within(2 * kFiles, "new"));
  EXPECT_THAT(names_in(run.dir()), ElementsAre("checkpoints"));
  EXPECT_TRUE(is_done_within(3 * kFiles, "new"));
}

TEST(Reshard, WritesOverNothing) {
  const TestRun run;
  const auto folder = run.save(20, 2);
  ASSERT_OK(folder);
  std::filesystem::create_directory(run.dir() / "empty");
  testing::write_bytes(run.dir() / "file", "mine");
  std::filesystem::create_symlink("nowhere", run.dir() / "link");
  for (const char* name : {"empty", "file", "link"}) {
    const auto outcome = reshard_into(*folder, run.dir() / name, 1);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::kConfig);
    EXPECT_THAT(outcome.error().what, HasSubstr("already exists"));
  }
  EXPECT_EQ(testing::read_bytes(run.dir() / "file"), "mine");
}

}  // namespace
}  // namespace motley

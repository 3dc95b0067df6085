// Damage to a checkpoint of three ranks, as by disks and by copying: each case is detected, the
// error names the damaged file, and the reader returns no value that was not saved.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "tests/checkpoint/three_ranks.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::Files;
using testing::kRanks;
using testing::read_bytes;
using testing::save_three_ranks;
using testing::tensors_of;
using testing::TestRun;
using testing::write_bytes;

constexpr const char* kManifest = "manifest.json";

// One row of the result table.
struct Row {
  std::size_t cases = 0;
  std::size_t found = 0;
  std::size_t named = 0;    // of those, the error names the damaged file
  std::size_t refused = 0;  // cases in which the reader refuses at least one tensor
  std::size_t tensors = 0;  // refused tensors over all cases
  std::vector<std::string> faults;
};

class DamageBattery : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto saved = save_three_ranks(run_, 10, 1);
    ASSERT_OK(saved);
    good_ = *saved;
    ASSERT_EQ(good_.size(), 2U * kRanks + 3);
    for (const auto& [name, bytes] : good_) names_.push_back(name);
    for (int rank = 0; rank < kRanks; ++rank) {
      for (const bool moments : {false, true}) {
        for (OwnedTensor& tensor : tensors_of(rank, 1, moments)) tensors_.push_back(tensor);
      }
    }
    folder_ = checkpoint_folder(run_.dir(), 10);
    ASSERT_OK(verify_checkpoint(folder_));
    EXPECT_EQ(refused_reads(), 0U);
  }

  // Replaces files by these bytes (nullopt: removes the file), checks, and restores them.
  // `suspects`: the files of which the error must name one.
  void try_with(const std::string& row,
                const std::map<std::string, std::optional<std::string>>& changes,
                const std::vector<std::string>& suspects) {
    for (const auto& [name, bytes] : changes) {
      if (bytes) {
        write_bytes(folder_ / name, *bytes);
      } else {
        fs::remove(folder_ / name);
      }
    }
    count(row, suspects);
    for (const auto& [name, bytes] : changes) {
      if (good_.contains(name)) {
        write_bytes(folder_ / name, good_.at(name));
      } else {
        fs::remove_all(folder_ / name);
      }
    }
  }

  void count(const std::string& name, const std::vector<std::string>& suspects) {
    Row& row = rows_[name];
    ++row.cases;
    const Result<void> verified = verify_checkpoint(folder_);
    if (verified.ok()) {
      row.faults.push_back(fmt::format("{}: not found", fmt::join(suspects, ", ")));
    } else {
      ++row.found;
      const bool is_named = names_one_of(verified.error(), suspects);
      row.named += is_named ? 1U : 0U;
      if (!is_named) {
        row.faults.push_back(
            fmt::format("{}: {}", fmt::join(suspects, ", "), describe(verified.error())));
      }
    }
    const std::size_t refused = refused_reads();
    row.refused += refused > 0 ? 1U : 0U;
    row.tensors += refused;
  }

  [[nodiscard]] bool names_one_of(const Error& error,
                                  const std::vector<std::string>& suspects) const {
    const auto is_named = [&](const std::string& name) {
      // After the name follows the end, or a position in the file.
      const std::size_t at = error.what.find("/" + name);
      const std::size_t end = at + 1 + name.size();
      return at != error.what.npos && (end == error.what.size() || error.what[end] == ':');
    };
    const auto is_suspect = [&](const std::string& name) {
      return std::ranges::find(suspects, name) != suspects.end();
    };
    return std::ranges::any_of(suspects, is_named) &&
           std::ranges::none_of(names_, [&](const std::string& name) {
             return !is_suspect(name) && is_named(name);
           });
  }

  // The number of tensors that the reader refuses; all of them if it does not open. Other tensors
  // must have the saved values.
  std::size_t refused_reads() {
    const auto reader = CheckpointReader::open(folder_);
    if (!reader.ok()) return tensors_.size();
    std::size_t refused = 0;
    for (const OwnedTensor& tensor : tensors_) {
      std::vector<float> values(tensor.values.size());
      if (!reader->read(tensor.name, tensor.shape, values).ok()) {
        ++refused;
      } else if (std::memcmp(values.data(), tensor.values.data(), values.size() * 4) != 0) {
        ADD_FAILURE() << tensor.name << " was read with wrong values";
      }
    }
    return refused;
  }

  void flip_bits(int count);
  void truncate(int count);
  void mix_files();
  void lose_and_add_files();
  void double_a_tensor();

  void expect_all_found(const std::vector<std::string>& rows_that_are_read_through) {
    fmt::print("{:<34} {:>6} {:>6} {:>6} {:>8}\n", "damage", "cases", "found", "named", "refused");
    for (const auto& [name, row] : rows_) {
      fmt::print("{:<34} {:>6} {:>6} {:>6} {:>8}\n", name, row.cases, row.found, row.named,
                 row.refused);
      EXPECT_GT(row.cases, 0U) << name;
      EXPECT_EQ(row.named, row.cases) << name << ": " << (row.faults.empty() ? "" : row.faults[0]);
      if (std::ranges::find(rows_that_are_read_through, name) == rows_that_are_read_through.end()) {
        EXPECT_EQ(row.refused, row.cases) << name;
      }
    }
    // Exactly the damaged tensor.
    EXPECT_EQ(rows_["a bit of a tensor"].tensors, rows_["a bit of a tensor"].cases);
    EXPECT_OK(verify_checkpoint(folder_));
  }

  TestRun run_;
  fs::path folder_;
  Files good_;
  std::vector<std::string> names_;
  std::vector<OwnedTensor> tensors_;
  std::map<std::string, Row> rows_;
  std::mt19937_64 random_{20261121};
};

void DamageBattery::flip_bits(int count) {
  std::size_t all_bytes = 0;
  for (const auto& [name, bytes] : good_) all_bytes += bytes.size();
  for (int i = 0; i < count; ++i) {
    // Half of the positions in the whole checkpoint, half in a file drawn first: most bytes are in
    // few files.
    std::size_t at = random_() % all_bytes;
    auto file = good_.begin();
    if (i % 2 == 0) {
      for (; at >= file->second.size(); ++file) at -= file->second.size();
    } else {
      std::advance(file, random_() % good_.size());
      at = random_() % file->second.size();
    }
    std::string bytes = file->second;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random_() % 8));
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file->second.data(), sizeof header_bytes);
    const bool is_shard = file->first.ends_with(".safetensors");
    const bool in_tensor = is_shard && at >= sizeof header_bytes + header_bytes;
    const char* const row = in_tensor                  ? "a bit of a tensor"
                            : is_shard                 ? "a bit of a header"
                            : file->first == kManifest ? "a bit of the manifest"
                                                       : "a bit of another JSON file";
    try_with(row, {{file->first, bytes}}, {file->first});
  }
}

void DamageBattery::truncate(int count) {
  for (int i = 0; i < count; ++i) {
    auto file = good_.begin();
    std::advance(file, random_() % good_.size());
    const std::size_t length = random_() % file->second.size();
    try_with("cut off", {{file->first, file->second.substr(0, length)}}, {file->first});
  }
  for (const auto& [name, bytes] : good_) {
    try_with("empty", {{name, ""}}, {name});
    try_with("with a byte more", {{name, bytes + '\0'}}, {name});
    try_with("all zeros", {{name, std::string(bytes.size(), '\0')}}, {name});
  }
}

void DamageBattery::mix_files() {
  for (const char* const part : {"model", "optimizer"}) {
    for (int a = 1; a <= kRanks; ++a) {
      for (int b = a + 1; b <= kRanks; ++b) {
        const std::string first = fmt::format("{}-{:05}-of-{:05}.safetensors", part, a, kRanks);
        const std::string second = fmt::format("{}-{:05}-of-{:05}.safetensors", part, b, kRanks);
        try_with("two ranks' files swapped", {{first, good_[second]}, {second, good_[first]}},
                 {first, second});
        try_with("another rank's file", {{first, good_[second]}}, {first});
      }
    }
  }
  const auto other_step = save_three_ranks(run_, 20, 2);
  ASSERT_OK(other_step);
  const TestRun other;
  const auto other_run = save_three_ranks(other, 10, 3);
  ASSERT_OK(other_run);
  for (const auto& [row, files] : {std::pair("a file of another step", &*other_step),
                                   std::pair("a file of another run", &*other_run)}) {
    std::map<std::string, std::optional<std::string>> all_shards;
    std::vector<std::string> shards;
    for (const auto& [name, bytes] : *files) {
      if (name == kManifest || bytes == good_.at(name)) continue;  // the same in both
      try_with(row, {{name, bytes}}, {name});
      all_shards[name] = bytes;
      shards.push_back(name);
    }
    try_with("an old manifest, new shards", all_shards, shards);
    // With the manifest of another step the error names the manifest, with that of another run the
    // files that it lists.
    shards.emplace_back(kManifest);
    shards.push_back(folder_.filename().string());
    try_with("an old manifest alone", {{kManifest, files->at(kManifest)}}, shards);
  }
}

void DamageBattery::lose_and_add_files() {
  for (const std::string& name : names_) try_with("missing", {{name, std::nullopt}}, {name});
  for (const char* const name :
       {"model-00004-of-00004.safetensors", "optimizer-00001-of-00004.safetensors", ".hidden",
        "manifest.json.tmp", "model.safetensors", "notes.txt"}) {
    try_with("a file more", {{name, good_.begin()->second}}, {name});
    try_with("an empty file more", {{name, ""}}, {name});
  }
}

// Also with a manifest that agrees, which our writer would not produce.
void DamageBattery::double_a_tensor() {
  for (const char* const part : {"model", "optimizer"}) {
    const std::string to = fmt::format("{}-00002-of-00003.safetensors", part);
    const bool moments = std::string(part) == "optimizer";
    std::vector<OwnedTensor> tensors = tensors_of(1, 1, moments);
    tensors.push_back(tensors_of(0, 1, moments).front());
    const testing::TempFolder made;
    const auto written =
        write_safetensors(made.path() / to, testing::views(tensors), {{"format", "pt"}});
    ASSERT_OK(written);
    const std::string bytes = read_bytes(made.path() / to);
    try_with("a tensor twice", {{to, bytes}}, {to});

    auto manifest = read_manifest(folder_);
    ASSERT_OK(manifest);
    for (WrittenFile& file : manifest->files) {
      if (file.name == to) file = *written;
    }
    try_with("a tensor twice, by the manifest too",
             {{to, bytes}, {kManifest, format_manifest(*manifest)}}, {kManifest});
  }
}

// Damage outside the values, through which the reader still reads: a header's padding, the JSON
// files beside the manifest, files that the manifest does not list.
const std::vector<std::string> kReadThrough = {"a bit of a header", "a bit of another JSON file",
                                               "all zeros", "a file more", "an empty file more"};

TEST_F(DamageBattery, IsFound) {
  flip_bits(1000);
  truncate(100);
  mix_files();
  lose_and_add_files();
  double_a_tensor();
  expect_all_found(kReadThrough);
}

// Run by scripts/damage-battery.
TEST_F(DamageBattery, DISABLED_IsFoundInTenThousandCases) {
  flip_bits(10000);
  truncate(1000);
  mix_files();
  lose_and_add_files();
  double_a_tensor();
  expect_all_found(kReadThrough);
}

}  // namespace
}  // namespace motley

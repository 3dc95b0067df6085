// Fixtures for the tests of checkpoints: a temporary folder, tensors that own their values, and a
// small run that saves checkpoints in one line.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/save/shard_writer.h"

namespace motley::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "motley-ckpt-XXXXXX").string();
    MOTLEY_CHECK(::mkdtemp(name.data()) != nullptr, "cannot make {}", name);
    path_ = name;
  }

  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  ~TempFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// The names in a folder, hidden ones too, sorted.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// Creates a new file each time: ext4 flushes a file that is truncated and rewritten, so the damage
// tests would wait for the disk thousands of times.
inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

using motley::OwnedTensor;

inline std::vector<TensorView> views(const std::vector<OwnedTensor>& tensors) {
  std::vector<TensorView> list;
  for (const OwnedTensor& tensor : tensors) {
    list.push_back({tensor.name, tensor.shape, tensor.values});
  }
  return list;
}

inline constexpr const char* kLaunch = "000003-0123456789abcdef";

// A run of a tiny model. `version` stands for the training progress: another version has other
// values.
class TestRun {
 public:
  [[nodiscard]] const std::filesystem::path& dir() const { return folder_.path(); }

  [[nodiscard]] static std::vector<OwnedTensor> parameters(float version) {
    return {{"wte.weight", {3, 2}, {version, 2, 3, 4, 5, 6}},
            {"h.0.ln_1.bias", {2}, {-0.0F, version}},
            {"h.0.ln_1.weight", {2}, {1, version / 3}},
            {"ln_f.weight", {1}, {version * 2}}};
  }

  [[nodiscard]] static CheckpointState state(std::int64_t step) {
    return {.step = step,
            .samples = static_cast<std::uint64_t>(step) * 8,
            .tokens = static_cast<std::uint64_t>(step) * 512,
            .optimizer_updates = step - 1,
            .seed = -7,
            .model_hash = "aa11",
            .model_family = "gpt2",
            .plan_hash = "bb22",
            .optimizer = "adamw"};
  }

  // Writes the shards of `ranks` ranks: parameters are distributed round-robin, each with its
  // moments.
  [[nodiscard]] Result<std::vector<Shard>> write(std::int64_t step,
                                                 int ranks,
                                                 float version) const {
    std::vector<Shard> shards;
    const std::vector<OwnedTensor> all = parameters(version);
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<OwnedTensor> own;
      std::vector<OwnedTensor> moments;
      for (std::size_t i = static_cast<std::size_t>(rank); i < all.size();
           i += static_cast<std::size_t>(ranks)) {
        own.push_back(all[i]);
        moments.push_back({"exp_avg/" + all[i].name, all[i].shape, all[i].values});
      }
      MOTLEY_ASSIGN(Shard shard,
                    write_shard({dir(), kLaunch, step}, rank, ranks, views(own), views(moments)));
      shards.push_back(std::move(shard));
    }
    return shards;
  }

  [[nodiscard]] Result<std::filesystem::path> commit(std::int64_t step,
                                                     const std::vector<Shard>& shards) const {
    return commit_checkpoint(dir(), kLaunch, state(step), shards, Json{{"train", {{"seed", -7}}}},
                             Json{{"model_type", "gpt2"}});
  }

  [[nodiscard]] Result<std::filesystem::path> save(std::int64_t step,
                                                   int ranks = 2,
                                                   float version = 1) const {
    MOTLEY_ASSIGN(const std::vector<Shard> shards, write(step, ranks, version));
    return commit(step, shards);
  }

  [[nodiscard]] std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> steps;
    for (const CheckpointInfo& info : list_checkpoints(dir())) steps.push_back(info.step);
    return steps;
  }

  // The names in the checkpoints folder, hidden ones too.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir() / "checkpoints")) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  TempFolder folder_;
};

// "" if ok, else the full error text.
template <class T>
std::string fault_of(const Result<T>& result) {
  return result.ok() ? "" : describe(result.error());
}

#define EXPECT_OK(result) EXPECT_EQ(::motley::testing::fault_of(result), "")
#define ASSERT_OK(result) ASSERT_EQ(::motley::testing::fault_of(result), "")

// Expects kCorrupt with `text` in its message.
#define EXPECT_CORRUPT(result, text)                                                     \
  do {                                                                                   \
    const auto& corrupt_result = (result);                                               \
    ASSERT_FALSE(corrupt_result.ok());                                                   \
    EXPECT_EQ(corrupt_result.error().code, ::motley::ErrorCode::kCorrupt);               \
    EXPECT_THAT(::motley::describe(corrupt_result.error()), ::testing::HasSubstr(text)); \
  } while (false)

}  // namespace motley::testing

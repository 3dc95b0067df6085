// A checkpoint of three ranks, large enough that most of its bytes are tensors.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/checkpoint/fixture.h"

namespace motley::testing {

using Files = std::map<std::string, std::string>;  // bytes by name

inline constexpr int kRanks = 3;

// Nine parameters, 36 to 1536 values each, and two moments of each.
inline std::vector<OwnedTensor> tensors_of(int rank, int version, bool moments) {
  std::vector<OwnedTensor> tensors;
  const std::vector<std::string> parts =
      moments ? std::vector<std::string>{"exp_avg/", "exp_avg_sq/"} : std::vector<std::string>{""};
  for (const std::string& part : parts) {
    for (int i = 0; i < 3; ++i) {
      const std::int64_t rows = i == 0 ? 1 : i == 1 ? 12 : 32;
      OwnedTensor tensor{fmt::format("{}h.{}.part{}", part, rank, i), {rows, 36 + i * 6}, {}};
      for (std::int64_t k = 0; k < rows * (36 + i * 6); ++k) {
        tensor.values.push_back(static_cast<float>(version) + static_cast<float>(k + rank) / 512);
      }
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

// The files of the committed checkpoint.
inline Result<Files> save_three_ranks(const TestRun& run, std::int64_t step, int version) {
  std::vector<Shard> shards;
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto parameters = tensors_of(rank, version, false);
    const auto moments = tensors_of(rank, version, true);
    MOTLEY_ASSIGN(Shard shard, write_shard({run.dir(), kLaunch, step}, rank, kRanks,
                                           views(parameters), views(moments)));
    shards.push_back(std::move(shard));
  }
  MOTLEY_ASSIGN(const std::filesystem::path folder, run.commit(step, shards));
  Files files;
  for (const std::string& name : names_in(folder)) files[name] = read_bytes(folder / name);
  return files;
}

}  // namespace motley::testing

// Agreement of all ranks, before a save, on whether the disk has space for their shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"

namespace motley {

// The saving rank and its folder.
struct SavingRank {
  std::filesystem::path run_dir;
  std::string launch;
  Rank rank;
  int rank_count = 0;
  std::uint64_t folder = 0;           // as in SpaceReport::folder
  std::vector<std::string> machines;  // [Rank]
};

// The ranks exchange how much space they need and how much they see free in which folder
// (SpaceReport::folder), so that none of them writes if space is short (kCorrupt on each). kPeer if
// a rank is lost. REQUIRES: called by all ranks at the same step.
[[nodiscard]] Result<void> agree_on_space(const SavingRank& self,
                                          std::int64_t step,
                                          FrameLink& link,
                                          Deadline deadline,
                                          std::uint64_t needed_bytes);

}  // namespace motley

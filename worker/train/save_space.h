// Whether the disk has room for the parts of all ranks, asked before any of them is written.
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

// Who saves, and where.
struct SavingRank {
  std::filesystem::path run_dir;
  std::string launch;
  Rank rank;
  int rank_count = 0;
  std::uint64_t folder = 0;           // as SpaceReport::folder
  std::vector<std::string> machines;  // [Rank]
};

// REQUIRES: called by all ranks at the same step. They tell each other how much they need and how
// much they see free in which folder (SpaceReport::folder), so that all of them leave the disk
// alone when it has no room (kCorrupt on each). kPeer when a rank is lost.
[[nodiscard]] Result<void> agree_on_space(const SavingRank& self,
                                          std::int64_t step,
                                          FrameLink& link,
                                          Deadline deadline,
                                          std::uint64_t needed_bytes);

}  // namespace motley

#include "worker/train/save_space.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/save/space.h"

namespace motley {

Result<void> agree_on_space(const SavingRank& self,
                            std::int64_t step,
                            FrameLink& link,
                            Deadline deadline,
                            std::uint64_t needed_bytes) {
  const SpaceReport mine{needed_bytes, free_bytes(self.run_dir), self.folder};
  auto payloads = all_gather_small(link, self.rank, self.rank_count, step,
                                   std::as_bytes(std::span(&mine, 1)), sizeof mine, deadline);
  if (!payloads) {
    Error error = std::move(payloads).error();
    // A damaged message is not a disk error, and the other ranks still wait for an answer.
    if (error.code == ErrorCode::kCorrupt) error.code = ErrorCode::kPeer;
    return error;
  }
  std::vector<SpaceReport> reports;
  for (const auto& payload : *payloads) {
    if (payload.size() != sizeof mine) {
      return Error{ErrorCode::kPeer, "malformed report of needed disk space from a rank", "",
                   "use the same version of Motley on every machine"};
    }
    std::memcpy(&reports.emplace_back(), payload.data(), sizeof mine);
  }
  return require_space(checkpoint_folder(self.run_dir, step), reports, self.machines);
}

}  // namespace motley

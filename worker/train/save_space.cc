#include "worker/train/save_space.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/save/space.h"

namespace motley {

Result<void> agree_on_space(const SavePlace& place,
                            Rank rank,
                            int rank_count,
                            FrameLink& link,
                            Deadline deadline,
                            std::uint64_t needed_bytes,
                            std::uint64_t folder) {
  const SpaceReport mine{needed_bytes, free_bytes(place.run_dir), folder};
  auto payloads = all_gather_small(link, rank, rank_count, place.step,
                                   std::as_bytes(std::span(&mine, 1)), sizeof mine, deadline);
  if (!payloads) {
    Error error = std::move(payloads).error();
    // A damaged message is no damaged disk, and the others still wait for an answer.
    if (error.code == ErrorCode::kCorrupt) error.code = ErrorCode::kPeer;
    return error;
  }
  std::vector<SpaceReport> reports;
  for (const auto& payload : *payloads) {
    if (payload.size() != sizeof mine) {
      return Error{ErrorCode::kPeer, "a rank tells its need of space in another form", "",
                   "use the same version of Motley on every machine"};
    }
    std::memcpy(&reports.emplace_back(), payload.data(), sizeof mine);
  }
  return require_space(checkpoint_folder(place.run_dir, place.step), reports);
}

}  // namespace motley

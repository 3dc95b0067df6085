#include "worker/save_shard.h"

#include <cstring>
#include <span>
#include <utility>

#include "checkpoint/space.h"

namespace motley {

Result<Shard> save_shard(const SavePlace& place,
                         Rank rank,
                         int rank_count,
                         FrameLink& link,
                         Deadline deadline,
                         const std::vector<TensorView>& parameters,
                         const std::vector<TensorView>& moments,
                         WorkCounter* work) {
  const SpaceReport mine{shard_bytes_max(parameters, moments), free_bytes(place.run_dir)};
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
  MOTLEY_TRY(require_space(checkpoint_folder(place.run_dir, place.step), reports));
  return write_shard(place, rank.value, rank_count, parameters, moments, work);
}

}  // namespace motley

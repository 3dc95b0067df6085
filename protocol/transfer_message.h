// The order to a worker of the verb "store" to assemble files for its machine before a training
// resumes: docs/formats/protocol.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/replication/checkpoint_metadata.h"

namespace motley {

// A file, or some of its tensors, to transfer from one machine to another.
struct TransferItem {
  std::int32_t stream = 0;  // unique for this pair of machines and direction
  Rank peer;                // the other machine's worker
  std::string file;
  std::vector<std::string> tensors;  // empty = the whole file
};

struct TransferOrder {
  Rank self;
  int rank_count = 1;
  Manifest manifest;                   // of the files that this worker handles; its state
  std::vector<std::string> linked;     // local files that this machine needs
  std::vector<TransferItem> incoming;  // by peer and stream
  std::vector<TransferItem> outgoing;  // in sending order
  // If set, incoming files are stored in the part of the step, which is created with these metadata
  // files if absent. Otherwise they and the linked files become a view
  // (checkpoint/replication/restored_view.h) if makes_restored_view is set.
  std::optional<CheckpointMetadata> step_metadata;
  bool makes_restored_view = true;
};

// The event of a worker that could not create a view, on a full disk, but whose part of the step
// contains all needed files and can be read in place; with "cause".
inline constexpr const char* kReadsPartEvent = "reads_part";

[[nodiscard]] Json transfer_order_to_json(const TransferOrder& order);
[[nodiscard]] Result<TransferOrder> transfer_order_from_json(const Json& json,
                                                             const std::string& source);

}  // namespace motley

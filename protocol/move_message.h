// What a worker of the verb "store" is told to bring together for its machine before a training
// goes on: docs/formats/protocol.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/store/texts.h"

namespace motley {

// A file, or some tensors of it, that goes from one machine to another.
struct FileMove {
  std::int32_t stream = 0;  // among those of this pair of machines and this direction
  Rank peer;                // the other machine's worker
  std::string file;
  std::vector<std::string> tensors;  // empty = the whole file
};

struct MoveOrder {
  Rank self;
  int rank_count = 1;
  Manifest manifest;                // of the files that this worker is to do with; its state
  std::vector<std::string> linked;  // files that lie here and are needed here
  std::vector<FileMove> incoming;   // by peer and stream
  std::vector<FileMove> outgoing;   // in the order in which they are sent
  // Set: incoming files go into the part of the step, which these texts make where it is not there;
  // else they and the linked ones become a view (checkpoint/store/view.h), where makes_view says
  // so.
  std::optional<CheckpointMetadata> texts;
  bool makes_view = true;
};

// The event of a worker that could not make a view, on a full disk, and found that what is needed
// there lies in the machine's part of the step, which can be read as it lies: with "cause".
inline constexpr const char* kReadsPartEvent = "reads_part";

[[nodiscard]] Json move_to_json(const MoveOrder& order);
[[nodiscard]] Result<MoveOrder> move_from_json(const Json& json, const std::string& source);

}  // namespace motley

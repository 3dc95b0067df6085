// Messages about the run's folder on a machine: docs/formats/protocol.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/replication/inventory.h"
#include "checkpoint/replication/store_location.h"

namespace motley {

// The order to take an inventory of the machine's folder.
struct InventoryOrder {
  std::string own_dir;  // as LauncherFolder::own_dir
  IfAbsent if_absent = IfAbsent::kMake;
  StoreQuery store_query;
};

[[nodiscard]] Json inventory_order_to_json(const InventoryOrder& order);
[[nodiscard]] Result<InventoryOrder> inventory_order_from_json(const Json& json,
                                                               const std::string& source);

// The events of the answer, in order.
[[nodiscard]] std::vector<Json> store_events(const StoreContents& answer);
// Reads the first of them; the metadata follow in the others.
[[nodiscard]] Result<StoreContents> read_store_event(const Json& event, const std::string& source);
inline constexpr const char* kStoreEvent = "store";
inline constexpr const char* kStoreMetadataEvent = "store_texts";

// The outcome of a save, for a machine's replicator: `{"keep": …}` and `{"drop": …}`.
struct ReplicationOrder {
  CheckpointMetadata step_metadata;
  std::vector<std::int64_t> retained_steps;  // steps that the folder retains, this one included
  bool adopts = false;                       // an earlier launch saved it
  // By replicator's rank: the files that the ranks of its folder have written.
  std::map<int, std::vector<std::string>> files_of = {};
};

[[nodiscard]] std::vector<Json> replication_messages(const ReplicationOrder& order);
// Parses the text joined from its pieces.
[[nodiscard]] Result<ReplicationOrder> replication_order_from_text(const std::string& text,
                                                                   const std::string& source);
inline constexpr const char* kKeepKey = "keep";

[[nodiscard]] Json drop_message(std::int64_t step);
inline constexpr const char* kDropKey = "drop";

}  // namespace motley

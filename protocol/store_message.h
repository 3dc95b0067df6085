// Messages about the run's folder on a machine: docs/formats/protocol.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/store/look.h"
#include "checkpoint/store/store_place.h"

namespace motley {

// The order to take an inventory of the machine's folder.
struct LookOrder {
  std::string own_dir;  // as LauncherFolder::own_dir
  IfAbsent if_absent = IfAbsent::kMake;
  StoreQuestion question;
};

[[nodiscard]] Json look_to_json(const LookOrder& order);
[[nodiscard]] Result<LookOrder> look_from_json(const Json& json, const std::string& source);

// The events of the answer, in order.
[[nodiscard]] std::vector<Json> store_events(const StoreAnswer& answer);
// Reads the first of them; the metadata follow in the others.
[[nodiscard]] Result<StoreAnswer> read_store_event(const Json& event, const std::string& source);
inline constexpr const char* kStoreEvent = "store";
inline constexpr const char* kStoreTextsEvent = "store_texts";

// The outcome of a save, for a machine's replicator: `{"keep": …}` and `{"drop": …}`.
struct KeepOrder {
  CheckpointMetadata texts;
  std::vector<std::int64_t> kept_steps;  // steps that the folder retains, this one included
  bool adopts = false;                   // an earlier launch saved it
  // By replicator's rank: the files that the ranks of its folder have written.
  std::map<int, std::vector<std::string>> files_of = {};
};

[[nodiscard]] std::vector<Json> keep_messages(const KeepOrder& order);
// Parses the text joined from its pieces.
[[nodiscard]] Result<KeepOrder> keep_from_text(const std::string& text, const std::string& source);
inline constexpr const char* kKeepKey = "keep";

[[nodiscard]] Json drop_message(std::int64_t step);
inline constexpr const char* kDropKey = "drop";

}  // namespace motley

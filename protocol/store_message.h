// What launcher and worker say of the run's folder on a machine: docs/formats/protocol.md.
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

// A worker's look into its machine's folder.
struct LookOrder {
  std::string own_dir;  // as LauncherFolder::own_dir
  IfAbsent if_absent = IfAbsent::kMake;
  StoreQuestion question;
};

[[nodiscard]] Json look_to_json(const LookOrder& order);
[[nodiscard]] Result<LookOrder> look_from_json(const Json& json, const std::string& source);

// The events that answer it, in their order.
[[nodiscard]] std::vector<Json> store_events(const StoreAnswer& answer);
// The first of them; its texts come with the others.
[[nodiscard]] Result<StoreAnswer> read_store_event(const Json& event, const std::string& source);
inline constexpr const char* kStoreEvent = "store";
inline constexpr const char* kStoreTextsEvent = "store_texts";

// What becomes of a save, to who keeps a machine's own folder: `{"keep": …}` and `{"drop": …}`.
struct KeepOrder {
  CheckpointMetadata texts;
  std::vector<std::int64_t> kept_steps;  // that stay in the folder, this one among them
  bool adopts = false;                   // it was saved by an earlier launch
  // By the rank of its keeper: the files that ranks of a folder have written.
  std::map<int, std::vector<std::string>> files_of = {};
};

[[nodiscard]] std::vector<Json> keep_messages(const KeepOrder& order);
// From the text that its pieces make.
[[nodiscard]] Result<KeepOrder> keep_from_text(const std::string& text, const std::string& source);
inline constexpr const char* kKeepKey = "keep";

[[nodiscard]] Json drop_message(std::int64_t step);
inline constexpr const char* kDropKey = "drop";

}  // namespace motley

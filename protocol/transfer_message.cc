#include "protocol/transfer_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "checkpoint/manifest.h"
#include "protocol/message_fields.h"

namespace motley {
namespace {

constexpr std::int64_t kStreamsMax = 60'000;

Json transfers_to_json(const std::vector<TransferItem>& moves) {
  Json list = Json::array();
  for (const TransferItem& move : moves) {
    list.push_back({{"stream", move.stream},
                    {"peer", move.peer.value},
                    {"file", move.file},
                    {"tensors", move.tensors}});
  }
  return list;
}

Result<void> check_named(const Manifest& manifest,
                         const std::string& file,
                         const std::string& source) {
  const auto named = std::ranges::find(manifest.files, file, &WrittenFile::name);
  if (named != manifest.files.end()) return {};
  return unusable_message(source, fmt::format("unknown file '{}'", file));
}

Result<std::vector<TransferItem>> transfers_from_json(const Json& json,
                                                      const char* key,
                                                      const TransferOrder& order,
                                                      const std::string& source) {
  MOTLEY_ASSIGN(const std::vector<Json> entries, objects_of(json, key, source));
  std::vector<TransferItem> moves;
  for (const Json& entry : entries) {
    MOTLEY_ASSIGN(const std::int64_t stream, json_get<std::int64_t>(entry, "stream", source));
    MOTLEY_ASSIGN(const std::int64_t peer, json_get<std::int64_t>(entry, "peer", source));
    if (stream < 0 || stream >= kStreamsMax || peer < 0 || peer >= order.rank_count ||
        peer == order.self.value) {
      return unusable_message(source, fmt::format("stream {} with worker {}", stream, peer));
    }
    TransferItem move{.stream = static_cast<std::int32_t>(stream),
                      .peer = Rank{static_cast<std::int32_t>(peer)}};
    MOTLEY_ASSIGN(move.file, json_get<std::string>(entry, "file", source));
    MOTLEY_ASSIGN(move.tensors, names_of(entry, "tensors", source));
    MOTLEY_TRY(check_named(order.manifest, move.file, source));
    moves.push_back(std::move(move));
  }
  return moves;
}

}  // namespace

Json transfer_order_to_json(const TransferOrder& order) {
  Json json = {{"self", order.self.value},
               {"rank_count", order.rank_count},
               {"manifest", format_manifest(order.manifest)},
               {"linked", order.linked},
               {"incoming", transfers_to_json(order.incoming)},
               {"outgoing", transfers_to_json(order.outgoing)},
               {"makes_view", order.makes_restored_view}};
  if (order.step_metadata) json["texts"] = metadata_to_json(*order.step_metadata);
  return json;
}

Result<TransferOrder> transfer_order_from_json(const Json& json, const std::string& source) {
  constexpr std::int64_t kMachinesMax = 4096;
  TransferOrder order;
  MOTLEY_ASSIGN(const std::int64_t count, json_get<std::int64_t>(json, "rank_count", source));
  MOTLEY_ASSIGN(const std::int64_t self, json_get<std::int64_t>(json, "self", source));
  if (count < 1 || count > kMachinesMax || self < 0 || self >= count) {
    return unusable_message(source, fmt::format("worker {} of {}", self, count));
  }
  order.self = Rank{static_cast<std::int32_t>(self)};
  order.rank_count = static_cast<int>(count);
  MOTLEY_ASSIGN(const std::string manifest, json_get<std::string>(json, "manifest", source));
  MOTLEY_ASSIGN(order.manifest, parse_manifest(manifest, source));
  MOTLEY_ASSIGN(order.linked, names_of(json, "linked", source));
  for (const std::string& file : order.linked) {
    MOTLEY_TRY(check_named(order.manifest, file, source));
  }
  MOTLEY_ASSIGN(order.incoming, transfers_from_json(json, "incoming", order, source));
  MOTLEY_ASSIGN(order.outgoing, transfers_from_json(json, "outgoing", order, source));
  MOTLEY_ASSIGN(order.makes_restored_view, json_get<bool>(json, "makes_view", source));
  if (const auto step_metadata = json.find("texts"); step_metadata != json.end()) {
    MOTLEY_ASSIGN(order.step_metadata, metadata_from_json(*step_metadata, source));
  }
  return order;
}

}  // namespace motley

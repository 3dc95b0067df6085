#include "protocol/store_message.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "base/json.h"
#include "protocol/message_fields.h"
#include "protocol/text_pieces.h"

namespace motley {
namespace {

constexpr std::size_t kUntoldBytesMax = 1024;

Json wanted_to_json(const WantedStep& wanted) {
  Json files = Json::array();
  for (const WrittenFile& file : wanted.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}});
  }
  return {{"step", wanted.step}, {"files", std::move(files)}};
}

Result<WantedStep> wanted_from_json(const Json& json, const std::string& source) {
  WantedStep wanted;
  MOTLEY_ASSIGN(wanted.step, count_of(json, "step", source));
  MOTLEY_ASSIGN(const std::vector<Json> files, objects_of(json, "files", source));
  for (const Json& entry : files) {
    WrittenFile file;
    MOTLEY_ASSIGN(file.name, json_get<std::string>(entry, "name", source));
    MOTLEY_ASSIGN(const std::int64_t bytes, count_of(entry, "bytes", source));
    file.bytes = static_cast<std::uint64_t>(bytes);
    MOTLEY_ASSIGN(file.hash, json_get<std::string>(entry, "hash", source));
    wanted.files.push_back(std::move(file));
  }
  return wanted;
}

Json left_to_json(const std::vector<LeftReport>& left) {
  Json json = Json::array();
  for (const LeftReport& each : left) {
    json.push_back({{"launch", each.launch}, {"report", shard_report_to_json(each.report)}});
  }
  return json;
}

Result<std::vector<LeftReport>> left_from_json(const Json& event, const std::string& source) {
  std::vector<LeftReport> left;
  MOTLEY_ASSIGN(const std::vector<Json> entries, objects_of(event, "left", source));
  for (const Json& entry : entries) {
    LeftReport each;
    MOTLEY_ASSIGN(each.launch, json_get<std::string>(entry, "launch", source));
    const auto report = entry.find("report");
    if (report == entry.end()) return unusable_message(source, "'report' is missing");
    MOTLEY_ASSIGN(each.report, shard_report_from_json(*report, source));
    left.push_back(std::move(each));
  }
  return left;
}

}  // namespace

Json inventory_order_to_json(const InventoryOrder& order) {
  Json json = {{"own_dir", order.own_dir}, {"make", order.if_absent == IfAbsent::kMake}};
  if (order.store_query.wanted) json["wanted"] = wanted_to_json(*order.store_query.wanted);
  if (order.store_query.metadata_of) json["texts_of"] = *order.store_query.metadata_of;
  return json;
}

Result<InventoryOrder> inventory_order_from_json(const Json& json, const std::string& source) {
  InventoryOrder order;
  MOTLEY_ASSIGN(order.own_dir, json_get<std::string>(json, "own_dir", source));
  MOTLEY_ASSIGN(const bool makes, json_get<bool>(json, "make", source));
  order.if_absent = makes ? IfAbsent::kMake : IfAbsent::kLeave;
  if (const auto wanted = json.find("wanted"); wanted != json.end()) {
    MOTLEY_ASSIGN(order.store_query.wanted, wanted_from_json(*wanted, source));
  }
  if (json.contains("texts_of")) {
    MOTLEY_ASSIGN(order.store_query.metadata_of, count_of(json, "texts_of", source));
  }
  return order;
}

std::vector<Json> store_events(const StoreContents& answer) {
  Json first = {{"event", kStoreEvent},
                {"dir", answer.location.dir.string()},
                {"shared", answer.location.is_shared},
                {"id", answer.location.id},
                {"id_changed_ns", answer.location.id_changed_ns},
                {"run", answer.run},
                {"free_bytes", answer.free_bytes},
                {"last_launch", answer.last_launch},
                {"held_by", answer.lock_holder},
                {"steps", answer.steps},
                {"whole", answer.intact},
                {"damaged", answer.damaged}};
  if (!answer.metadata_error.empty()) first["untold"] = answer.metadata_error;
  if (!answer.left.empty()) first["left"] = left_to_json(answer.left);
  std::vector<Json> events = {std::move(first)};
  if (!answer.step_metadata) return events;
  for (Json& piece : in_pieces(metadata_to_json(*answer.step_metadata).dump())) {
    piece["event"] = kStoreMetadataEvent;
    events.push_back(std::move(piece));
  }
  return events;
}

Result<StoreContents> read_store_event(const Json& event, const std::string& source) {
  StoreContents answer;
  MOTLEY_ASSIGN(const std::string dir, json_get<std::string>(event, "dir", source));
  answer.location.dir = dir;
  if (!answer.location.dir.is_absolute()) return unusable_message(source, "'dir' is not absolute");
  MOTLEY_ASSIGN(answer.location.is_shared, json_get<bool>(event, "shared", source));
  MOTLEY_ASSIGN(answer.location.id, json_get<std::string>(event, "id", source));
  MOTLEY_ASSIGN(answer.location.id_changed_ns, count_of(event, "id_changed_ns", source));
  MOTLEY_ASSIGN(answer.run, json_get<std::string>(event, "run", source));
  const auto free = event.find("free_bytes");
  if (free == event.end() || !free->is_number_unsigned()) {
    return unusable_message(source, "'free_bytes' is missing or not a number of bytes");
  }
  answer.free_bytes = free->get<std::uint64_t>();
  MOTLEY_ASSIGN(answer.last_launch, count_of(event, "last_launch", source));
  MOTLEY_ASSIGN(answer.lock_holder, json_get<std::string>(event, "held_by", source));
  MOTLEY_ASSIGN(answer.steps, counts_of(event, "steps", source));
  MOTLEY_ASSIGN(answer.intact, names_of(event, "whole", source));
  MOTLEY_ASSIGN(answer.damaged, names_of(event, "damaged", source));
  if (event.contains("untold")) {
    MOTLEY_ASSIGN(answer.metadata_error, json_get<std::string>(event, "untold", source));
    if (excerpt(answer.metadata_error, kUntoldBytesMax) != answer.metadata_error) {
      return unusable_message(source, "'untold' is too long or has control characters");
    }
  }
  if (event.contains("left")) {
    MOTLEY_ASSIGN(answer.left, left_from_json(event, source));
  }
  return answer;
}

std::vector<Json> replication_messages(const ReplicationOrder& order) {
  Json files = Json::array();
  for (const auto& [replicator, names] : order.files_of) {
    files.push_back({{"keeper", replicator}, {"files", names}});
  }
  const Json content = {{"texts", metadata_to_json(order.step_metadata)},
                        {"kept_steps", order.retained_steps},
                        {"adopts", order.adopts},
                        {"files_of", std::move(files)}};
  std::vector<Json> messages;
  for (Json& piece : in_pieces(content.dump())) messages.push_back({{kKeepKey, std::move(piece)}});
  return messages;
}

Result<ReplicationOrder> replication_order_from_text(const std::string& text,
                                                     const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  ReplicationOrder order;
  if (!json.contains("texts")) return unusable_message(source, "'texts' is missing");
  MOTLEY_ASSIGN(order.step_metadata, metadata_from_json(json["texts"], source));
  MOTLEY_ASSIGN(order.retained_steps, counts_of(json, "kept_steps", source));
  MOTLEY_ASSIGN(order.adopts, json_get<bool>(json, "adopts", source));
  MOTLEY_ASSIGN(const std::vector<Json> entries, objects_of(json, "files_of", source));
  for (const Json& entry : entries) {
    MOTLEY_ASSIGN(const std::int64_t replicator, count_of(entry, "keeper", source));
    if (!std::in_range<int>(replicator)) return unusable_message(source, "a keeper is not a rank");
    MOTLEY_ASSIGN(order.files_of[static_cast<int>(replicator)], names_of(entry, "files", source));
  }
  return order;
}

Json drop_message(std::int64_t step) {
  return {{kDropKey, step}};
}

}  // namespace motley

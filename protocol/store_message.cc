#include "protocol/store_message.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "base/json.h"
#include "protocol/message_fields.h"
#include "protocol/pieces.h"

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

}  // namespace

Json look_to_json(const LookOrder& order) {
  Json json = {{"own_dir", order.own_dir}, {"make", order.if_absent == IfAbsent::kMake}};
  if (order.question.wanted) json["wanted"] = wanted_to_json(*order.question.wanted);
  if (order.question.texts_of) json["texts_of"] = *order.question.texts_of;
  return json;
}

Result<LookOrder> look_from_json(const Json& json, const std::string& source) {
  LookOrder order;
  MOTLEY_ASSIGN(order.own_dir, json_get<std::string>(json, "own_dir", source));
  MOTLEY_ASSIGN(const bool makes, json_get<bool>(json, "make", source));
  order.if_absent = makes ? IfAbsent::kMake : IfAbsent::kLeave;
  if (const auto wanted = json.find("wanted"); wanted != json.end()) {
    MOTLEY_ASSIGN(order.question.wanted, wanted_from_json(*wanted, source));
  }
  if (json.contains("texts_of")) {
    MOTLEY_ASSIGN(order.question.texts_of, count_of(json, "texts_of", source));
  }
  return order;
}

std::vector<Json> store_events(const StoreAnswer& answer) {
  Json first = {{"event", kStoreEvent},
                {"dir", answer.place.dir.string()},
                {"shared", answer.place.is_shared},
                {"id", answer.place.id},
                {"id_changed_ns", answer.place.id_changed_ns},
                {"run", answer.run},
                {"free_bytes", answer.free_bytes},
                {"last_launch", answer.last_launch},
                {"held_by", answer.held_by},
                {"steps", answer.steps},
                {"whole", answer.whole},
                {"damaged", answer.damaged}};
  if (!answer.untold.empty()) first["untold"] = answer.untold;
  std::vector<Json> events = {std::move(first)};
  if (!answer.texts) return events;
  for (Json& piece : in_pieces(texts_to_json(*answer.texts).dump())) {
    piece["event"] = kStoreTextsEvent;
    events.push_back(std::move(piece));
  }
  return events;
}

Result<StoreAnswer> read_store_event(const Json& event, const std::string& source) {
  StoreAnswer answer;
  MOTLEY_ASSIGN(const std::string dir, json_get<std::string>(event, "dir", source));
  answer.place.dir = dir;
  if (!answer.place.dir.is_absolute()) return unusable_message(source, "'dir' is not absolute");
  MOTLEY_ASSIGN(answer.place.is_shared, json_get<bool>(event, "shared", source));
  MOTLEY_ASSIGN(answer.place.id, json_get<std::string>(event, "id", source));
  MOTLEY_ASSIGN(answer.place.id_changed_ns, count_of(event, "id_changed_ns", source));
  MOTLEY_ASSIGN(answer.run, json_get<std::string>(event, "run", source));
  const auto free = event.find("free_bytes");
  if (free == event.end() || !free->is_number_unsigned()) {
    return unusable_message(source, "'free_bytes' is missing or not a number of bytes");
  }
  answer.free_bytes = free->get<std::uint64_t>();
  MOTLEY_ASSIGN(answer.last_launch, count_of(event, "last_launch", source));
  MOTLEY_ASSIGN(answer.held_by, json_get<std::string>(event, "held_by", source));
  MOTLEY_ASSIGN(answer.steps, counts_of(event, "steps", source));
  MOTLEY_ASSIGN(answer.whole, names_of(event, "whole", source));
  MOTLEY_ASSIGN(answer.damaged, names_of(event, "damaged", source));
  if (event.contains("untold")) {
    MOTLEY_ASSIGN(answer.untold, json_get<std::string>(event, "untold", source));
    if (excerpt(answer.untold, kUntoldBytesMax) != answer.untold) {
      return unusable_message(source, "'untold' is too long or has control characters");
    }
  }
  return answer;
}

std::vector<Json> keep_messages(const KeepOrder& order) {
  Json files = Json::array();
  for (const auto& [keeper, names] : order.files_of) {
    files.push_back({{"keeper", keeper}, {"files", names}});
  }
  const Json whole = {{"texts", texts_to_json(order.texts)},
                      {"kept_steps", order.kept_steps},
                      {"adopts", order.adopts},
                      {"files_of", std::move(files)}};
  std::vector<Json> messages;
  for (Json& piece : in_pieces(whole.dump())) messages.push_back({{kKeepKey, std::move(piece)}});
  return messages;
}

Result<KeepOrder> keep_from_text(const std::string& text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  KeepOrder order;
  if (!json.contains("texts")) return unusable_message(source, "'texts' is missing");
  MOTLEY_ASSIGN(order.texts, texts_from_json(json["texts"], source));
  MOTLEY_ASSIGN(order.kept_steps, counts_of(json, "kept_steps", source));
  MOTLEY_ASSIGN(order.adopts, json_get<bool>(json, "adopts", source));
  MOTLEY_ASSIGN(const std::vector<Json> entries, objects_of(json, "files_of", source));
  for (const Json& entry : entries) {
    MOTLEY_ASSIGN(const std::int64_t keeper, count_of(entry, "keeper", source));
    if (!std::in_range<int>(keeper)) return unusable_message(source, "a keeper is not a rank");
    MOTLEY_ASSIGN(order.files_of[static_cast<int>(keeper)], names_of(entry, "files", source));
  }
  return order;
}

Json drop_message(std::int64_t step) {
  return {{kDropKey, step}};
}

}  // namespace motley

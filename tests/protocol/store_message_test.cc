#include "protocol/store_message.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/manifest.h"
#include "protocol/text_pieces.h"
#include "protocol/transfer_message.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSource = "a test";

Manifest manifest_of(const std::vector<WrittenFile>& files) {
  return {.state = {.step = 7,
                    .model_hash = "aa",
                    .model_family = "gpt2",
                    .plan_hash = "bb",
                    .optimizer = "adamw"},
          .files = files,
          .parameter_hash = std::string(32, '0'),
          .config = Json::object()};
}

CheckpointMetadata step_metadata() {
  CheckpointMetadata step_metadata;
  const std::string index = "{}\n";
  step_metadata.manifest = manifest_of(
      {{.name = "model-00001-of-00001.safetensors", .bytes = 5, .hash = std::string(32, '1')},
       {.name = "model.safetensors.index.json",
        .bytes = index.size(),
        .hash = hash128_hex(std::as_bytes(std::span(index)))}});
  step_metadata.files = {{"manifest.json", format_manifest(step_metadata.manifest)},
                         {"model.safetensors.index.json", index}};
  return step_metadata;
}

std::string joined(const std::vector<Json>& pieces) {
  PieceJoiner joiner;
  std::optional<std::string> text;
  for (const Json& piece : pieces) {
    EXPECT_FALSE(text) << "whole before its last piece";
    const auto added = joiner.add(piece);
    EXPECT_TRUE(added.ok());
    text = *added;
  }
  EXPECT_TRUE(text);
  return text.value_or("");
}

TEST(Pieces, MakeTheTextAgainWhateverItsLength) {
  for (const std::size_t length : {0, 1, 524'287, 524'288, 524'289, 3'000'000}) {
    std::string text;
    while (text.size() < length) text += "ö\x01x";
    const std::vector<Json> pieces = in_pieces(text);
    for (const Json& piece : pieces) {
      EXPECT_LT(piece.dump().size(), std::size_t{4} << 20);
      EXPECT_NO_THROW((void)piece.dump()) << "cut within a character";
    }
    EXPECT_EQ(joined(pieces), text);
  }
}

TEST(Pieces, RefuseWhatIsNotTheNext) {
  const std::vector<Json> pieces = in_pieces(std::string(1'500'000, 'x'));
  ASSERT_EQ(pieces.size(), 3U);
  PieceJoiner joiner;
  EXPECT_FALSE(joiner.add(pieces[1]).ok());
  EXPECT_TRUE(joiner.add(pieces[0]).ok());
  EXPECT_FALSE(joiner.add(pieces[2]).ok());
  EXPECT_FALSE(joiner.add(Json(3)).ok());
  EXPECT_FALSE(joiner.add({{"part", 0}, {"of", 1'000'000'000}, {"text", "x"}}).ok());
  EXPECT_FALSE(joiner.add({{"part", 0}, {"of", 0}, {"text", "x"}}).ok());
  EXPECT_EQ(joined(pieces).size(), 1'500'000U);
}

TEST(StoreMessage, QuestionAndAnswerReadBack) {
  const InventoryOrder order{
      .own_dir = "~/runs/x",
      .if_absent = IfAbsent::kLeave,
      .store_query = {.wanted = WantedStep{7, step_metadata().manifest.files}, .metadata_of = 7}};
  const auto read = inventory_order_from_json(inventory_order_to_json(order), kSource);
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->own_dir, order.own_dir);
  EXPECT_EQ(read->if_absent, IfAbsent::kLeave);
  EXPECT_EQ(read->store_query.wanted->files.at(0).hash, std::string(32, '1'));
  EXPECT_EQ(read->store_query.metadata_of, 7);

  StoreContents answer{
      .location = {"/home/x/runs/x", false, "0011223344556677", 1'700'000'000'000'000'000},
      .run = "8899aabbccddeeff",
      .free_bytes = 1ULL << 63,
      .last_launch = 3,
      .lock_holder = "process 3",
      .steps = {5, 7},
      .intact = {"a"},
      .damaged = {"b"},
      .step_metadata = step_metadata()};
  const std::vector<Json> events = store_events(answer);
  ASSERT_EQ(events.size(), 2U);
  const auto first = read_store_event(events[0], kSource);
  ASSERT_TRUE(first.ok()) << describe(first.error());
  EXPECT_EQ(first->location.dir, answer.location.dir);
  EXPECT_EQ(first->location.id_changed_ns, answer.location.id_changed_ns);
  EXPECT_EQ(first->run, answer.run);
  EXPECT_EQ(first->free_bytes, answer.free_bytes);
  EXPECT_THAT(first->steps, ElementsAre(5, 7));
  EXPECT_THAT(first->damaged, ElementsAre("b"));
  EXPECT_EQ(first->metadata_error, "");
}

TEST(StoreMessage, WhyTextsCannotBeToldIsCheckedBeforeItIsShown) {
  StoreContents answer{.location = {"/home/x/runs/x", false, "0011223344556677", 1},
                       .steps = {7},
                       .metadata_error = "key 'files' is missing"};
  const std::vector<Json> events = store_events(answer);
  ASSERT_EQ(events.size(), 1U);
  const auto read = read_store_event(events[0], kSource);
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->metadata_error, answer.metadata_error);
  for (const Json& wrong : {Json(3), Json("a\x1b[2J"), Json(std::string(5000, 'x'))}) {
    Json event = events[0];
    event["untold"] = wrong;
    EXPECT_FALSE(read_store_event(event, kSource).ok());
  }
}

TEST(StoreMessage, KeepOrderReadsBackAndIsChecked) {
  const ReplicationOrder order{step_metadata(), {3, 7}, true, {{0, {"a", "b"}}, {4, {"c"}}}};
  std::vector<Json> pieces;
  for (const Json& message : replication_messages(order)) pieces.push_back(message[kKeepKey]);
  const std::string text = joined(pieces);
  const auto read = replication_order_from_text(text, kSource);
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->step_metadata.files, order.step_metadata.files);
  EXPECT_THAT(read->retained_steps, ElementsAre(3, 7));
  EXPECT_TRUE(read->adopts);
  EXPECT_EQ(read->files_of, order.files_of);

  Json damaged = parse_json(text, kSource).value();
  damaged["texts"]["model.safetensors.index.json"] = "{ }";
  EXPECT_THAT(replication_order_from_text(damaged.dump(), kSource).error().cause,
              HasSubstr("model.safetensors.index.json differs from the manifest"));
  damaged = parse_json(text, kSource).value();
  damaged["texts"]["../x"] = "";
  EXPECT_TRUE(replication_order_from_text(damaged.dump(), kSource).ok())
      << "a name that leaves is left out";
  damaged["texts"]["y"] = "";
  EXPECT_FALSE(replication_order_from_text(damaged.dump(), kSource).ok());
}

TEST(MoveMessage, ReadsBackAndIsChecked) {
  const TransferOrder order{
      .self = Rank{1},
      .rank_count = 3,
      .manifest = manifest_of(step_metadata().manifest.files),
      .linked = {"model-00001-of-00001.safetensors"},
      .incoming = {{0, Rank{2}, "model-00001-of-00001.safetensors", {"a", "b"}}},
      .outgoing = {{5, Rank{0}, "model-00001-of-00001.safetensors", {}}},
      .makes_restored_view = false};
  const auto read = transfer_order_from_json(transfer_order_to_json(order), kSource);
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->incoming.at(0).peer, Rank{2});
  EXPECT_THAT(read->incoming.at(0).tensors, ElementsAre("a", "b"));
  EXPECT_EQ(read->outgoing.at(0).stream, 5);
  EXPECT_FALSE(read->makes_restored_view);
  for (const auto& [key, value] : {std::pair{"peer", Json(1)}, std::pair{"peer", Json(3)},
                                   std::pair{"stream", Json(-1)}, std::pair{"file", Json("x")}}) {
    Json wrong = transfer_order_to_json(order);
    wrong["incoming"][0][key] = value;
    EXPECT_FALSE(transfer_order_from_json(wrong, kSource).ok()) << key;
  }
  Json wrong = transfer_order_to_json(order);
  wrong["linked"][0] = "x";
  EXPECT_FALSE(transfer_order_from_json(wrong, kSource).ok());
}

}  // namespace
}  // namespace motley

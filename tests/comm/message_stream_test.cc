// Messages through SendQueue and MessageReader into a Mailbox, over a stream with arbitrary piece
// boundaries.
#include "comm/transport/message_stream.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "comm/streams.h"
#include "support/property.h"

namespace motley {
namespace {

using testing::HasSubstr;

// The example of docs/formats/tcp.md.
TEST(MessageStream, HasTheDocumentedBytes) {
  const Bytes stream = stream_with(0x0102030405, 1, 9);
  ASSERT_EQ(stream.size(), 16U + 64 + 1);
  const std::vector<int> header = {5, 4, 3, 2, 1, 0, 0x41, 0x57, 65, 0, 0, 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < header.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(stream[i]), header[i]) << i;
  }
}

// The second example there.
TEST(MessageStream, GivesEachPieceOfBulkAHeader) {
  const Bytes stream = stream_with(kBulkTag | 1, 1, 9);
  ASSERT_EQ(stream.size(), 2 * 16U + 64 + 1);
  const std::vector<int> headers = {1,    0,    0,    0,    0,    0x80, 0x68, 0x3a,  //
                                    65,   0,    0,    0,    0,    0,    0,    0,     //
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xa3, 0xf6,  //
                                    65,   0,    0,    0,    0,    0,    0,    0};
  for (std::size_t i = 0; i < headers.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(stream[i]), headers[i]) << i;
  }
}

TEST(MessageStream, ABeatIsNothingToTheReceiver) {
  SendQueue queue(Rank{1});
  EXPECT_TRUE(queue.idle());
  queue.push_heartbeat();
  EXPECT_FALSE(queue.idle());
  Receiver receiver;
  auto receive = receiver.recv(4, 10);
  EXPECT_TRUE(receiver.feed(stream_of(queue)).empty());
  EXPECT_TRUE(queue.idle());
  EXPECT_FALSE(receive.done());
  receiver.feed(stream_with(4, 10, 2));
  expect_message(receive, 10, 2);
}

// Small messages and beats do not wait for their turn.
TEST(MessageStream, AQueueThatWaitsForItsTurnGivesNothingLong) {
  EgressScheduler egress(3, [] {});
  SendQueue queue(Rank{1});
  queue.use_scheduler(egress);
  egress.enqueue(Rank{2});
  EXPECT_TRUE(queue.push(kBulkTag | 1, message(1000, 1)).wakes_writer);
  EXPECT_TRUE(queue.next()[0].empty());
  EXPECT_TRUE(queue.idle());
  EXPECT_TRUE(queue.push(3, message(100, 2)).wakes_writer);
  EXPECT_EQ(stream_of(queue).size(), 16U + 64 + 100);
  EXPECT_TRUE(queue.push(3, message(EgressScheduler::kMessageBytesMin, 3)).wakes_writer);
  EXPECT_TRUE(queue.next()[0].empty());
  queue.push_heartbeat();
  EXPECT_EQ(stream_of(queue).size(), 16U);
  EXPECT_TRUE(queue.next()[0].empty());
  egress.forget_peer(Rank{2});
  EXPECT_EQ(stream_of(queue).size(),
            16U + 64 + EgressScheduler::kMessageBytesMin + 2 * 16U + 64 + 1000);
}

TEST(MessageStream, AMessageThatHasBeenTakenHasHadItsTurn) {
  EgressScheduler egress(3, [] {});
  SendQueue queue(Rank{1});
  queue.use_scheduler(egress);
  (void)queue.push(3, message(EgressScheduler::kMessageBytesMin, 1));
  const auto pieces = queue.next();
  queue.taken(pieces[0].size());
  EXPECT_FALSE(egress.may_begin(Rank{2}, EgressScheduler::Kind::kBulk));
  queue.taken(pieces[1].size());
  EXPECT_TRUE(egress.may_begin(Rank{2}, EgressScheduler::Kind::kBulk));
}

TEST(MessageStream, AQueueThatIsLostKeepsNoTurn) {
  EgressScheduler egress(3, [] {});
  SendQueue queue(Rank{1});
  queue.use_scheduler(egress);
  auto sent = queue.push(3, message(EgressScheduler::kMessageBytesMin, 1));
  EXPECT_FALSE(egress.may_begin(Rank{2}, EgressScheduler::Kind::kBulk));
  queue.lose("its end");
  EXPECT_TRUE(egress.may_begin(Rank{2}, EgressScheduler::Kind::kBulk));
  EXPECT_FALSE(queue.push(3, message(EgressScheduler::kMessageBytesMin, 1)).wakes_writer);
  EXPECT_TRUE(egress.may_begin(Rank{2}, EgressScheduler::Kind::kBulk));
}

TEST(MessageStream, GivesTheBufferBackOnceItHasBeenTaken) {
  SendQueue queue(Rank{1});
  auto sent = queue.push(3, message(100, 1));
  EXPECT_TRUE(sent.wakes_writer);
  EXPECT_FALSE(queue.push(3, message(100, 1)).wakes_writer);
  queue.taken(queue.next()[0].size());
  EXPECT_FALSE(sent.pending.done());
  queue.taken(queue.next()[1].size());
  expect_message(sent.pending, 100, 1);
}

// Writes one message; returns its last payload byte.
std::uint8_t write_one(SendQueue& queue) {
  const auto pieces = queue.next();
  const auto fill = std::to_integer<std::uint8_t>(pieces[1].back());
  queue.taken(pieces[0].size() + pieces[1].size());
  return fill;
}

TEST(MessageStream, BulkLetsAllElseGoFirstButForWhatIsUnderWay) {
  SendQueue queue(Rank{1});
  (void)queue.push(kBulkTag | 3, message(1000, 1));
  (void)queue.push(kBulkTag | 3, message(1000, 2));
  queue.taken(queue.next()[0].size());  // a part of the first was written
  (void)queue.push(3, message(10, 3));
  (void)queue.push(2, message(10, 4));
  (void)queue.push(kBulkTag | 2, message(1000, 5));
  std::vector<int> order(5);
  for (int& fill : order) fill = write_one(queue);
  EXPECT_EQ(order, (std::vector{1, 3, 4, 2, 5}));
  EXPECT_TRUE(queue.next()[0].empty());
}

TEST(MessageStream, WhatIsUrgentPassesBetweenTwoPiecesOfBulk) {
  SendQueue queue(Rank{1});
  queue.set_piece_bytes(500);
  Receiver receiver;
  auto bulk = receiver.recv(kBulkTag | 3, 1000);
  auto urgent = receiver.recv(3, 1000);
  (void)queue.push(kBulkTag | 3, message(1000, 1));
  EXPECT_TRUE(receiver.feed(stream_of_one(queue)).empty());
  (void)queue.push(3, message(1000, 2));
  EXPECT_TRUE(receiver.feed(stream_of_one(queue)).empty());
  expect_message(urgent, 1000, 2);
  EXPECT_FALSE(bulk.done());
  EXPECT_TRUE(receiver.feed(stream_of(queue)).empty());
  expect_message(bulk, 1000, 1);
  EXPECT_TRUE(queue.idle());
}

TEST(MessageStream, ABeatPassesBetweenTwoPiecesOfBulk) {
  SendQueue queue(Rank{1});
  queue.set_piece_bytes(500);
  Receiver receiver;
  auto bulk = receiver.recv(kBulkTag | 3, 1000);
  (void)queue.push(kBulkTag | 3, message(1000, 1));
  EXPECT_TRUE(receiver.feed(stream_of_one(queue)).empty());
  EXPECT_TRUE(receiver.feed(stream_of_a_beat()).empty());
  EXPECT_TRUE(receiver.feed(stream_of(queue)).empty());
  expect_message(bulk, 1000, 1);
}

TEST(MessageStream, BulkThatIsLongerThanItsRoomIsDroppedInPiecesToo) {
  SendQueue queue(Rank{1});
  queue.set_piece_bytes(500);
  Receiver receiver;
  auto bulk = receiver.recv(kBulkTag | 3, 10);
  (void)queue.push(kBulkTag | 3, message(1000, 1));
  EXPECT_TRUE(receiver.feed(stream_of(queue), 77).empty());
  EXPECT_FALSE(bulk.wait(soon(), "a message").ok());
  auto next = receiver.recv(3, 10);
  EXPECT_TRUE(receiver.feed(stream_with(3, 10, 2)).empty());
  expect_message(next, 10, 2);
}

TEST(MessageStream, EndsBulkToo) {
  SendQueue queue(Rank{1});
  queue.set_piece_bytes(500);
  Receiver receiver;
  auto received = receiver.recv(kBulkTag | 3, 1000);
  auto bulk = queue.push(kBulkTag | 3, message(1000, 1));
  EXPECT_TRUE(receiver.feed(stream_of_one(queue)).empty());
  auto urgent = queue.push(3, message(1000, 2));
  queue.lose("it left");
  receiver.mailbox().lose("it left");
  EXPECT_TRUE(queue.next()[0].empty());
  EXPECT_FALSE(received.wait(soon(), "a message").ok());
  EXPECT_FALSE(bulk.pending.wait(soon(), "a send").ok());
  EXPECT_FALSE(urgent.pending.wait(soon(), "a send").ok());
}

// Messages are pushed and written in any order: each tag keeps its order, and no bulk message
// begins while another message waits.
RC_GTEST_PROP(MessageStreamProperty, KeepsTheOrderOfEachTagAndBulkLast, ()) {
  struct Sent {
    Tag tag = 0;
    std::uint8_t number = 0;
  };

  SendQueue queue(Rank{1});
  std::vector<Sent> waiting;
  std::uint8_t pushed = 0;
  const auto write = [&] {
    const std::uint8_t number = write_one(queue);
    const auto it = std::ranges::find(waiting, number, &Sent::number);
    RC_ASSERT(it != waiting.end());
    RC_ASSERT(std::ranges::find(waiting, it->tag, &Sent::tag) == it);
    RC_ASSERT((it->tag & kBulkTag) == 0 ||
              std::ranges::all_of(waiting, [](const Sent& s) { return (s.tag & kBulkTag) != 0; }));
    waiting.erase(it);
  };
  for (const int act : *rc::gen::container<std::vector<int>>(40, rc::gen::inRange(0, 6))) {
    if (act < 4) {
      const Tag tag = static_cast<Tag>(act / 2) | (act % 2 == 0 ? kBulkTag : 0);
      waiting.push_back({tag, pushed});
      (void)queue.push(tag, message(1, pushed++));
    } else if (!waiting.empty()) {
      write();
    }
  }
  while (!waiting.empty()) write();
  RC_ASSERT(queue.next()[0].empty());
}

// Urgent and bulk messages; more are pushed while pieces of others are written.
RC_GTEST_PROP(MessageStreamProperty, ArrivesHoweverItIsCut, ()) {
  constexpr std::size_t kMessages = 8;
  const auto sizes = *rc::gen::container<std::vector<std::uint16_t>>(
      kMessages, rc::gen::arbitrary<std::uint16_t>());
  const auto tags = *rc::gen::container<std::vector<Tag>>(
      kMessages, rc::gen::elementOf(std::vector<Tag>{0, 1, kBulkTag, kBulkTag | 1}));
  const auto step = *rc::gen::inRange<std::size_t>(1, 5000);
  const auto posted_before = *rc::gen::container<std::vector<std::uint8_t>>(
      kMessages, rc::gen::inRange<std::uint8_t>(0, 2));
  const auto written_between =
      *rc::gen::container<std::vector<int>>(kMessages, rc::gen::inRange(0, 4));
  SendQueue queue(Rank{1});
  queue.set_piece_bytes(*rc::gen::inRange<std::size_t>(500, 70'000));
  Receiver receiver;
  std::vector<Pending> receives(kMessages);
  // Receives of one tag are posted in order: after a late one all following are late.
  std::map<Tag, bool> late_tag;
  for (std::size_t i = 0; i < kMessages; ++i) {
    late_tag[tags[i]] = late_tag[tags[i]] || posted_before[i] == 0;
    if (!late_tag[tags[i]]) receives[i] = receiver.recv(tags[i], 70'000);
  }
  for (std::size_t i = 0; i < kMessages; ++i) {
    (void)queue.push(tags[i], message(sizes[i], static_cast<std::uint8_t>(i)));
    for (int written = 0; written < written_between[i]; ++written) {
      RC_ASSERT(receiver.feed(stream_of_one(queue), step).empty());
    }
  }
  RC_ASSERT(receiver.feed(stream_of(queue), step).empty());
  for (std::size_t i = 0; i < kMessages; ++i) {
    if (!receives[i].valid()) receives[i] = receiver.recv(tags[i], 70'000);
    auto outcome = receives[i].wait(soon(), "a message");
    RC_ASSERT(outcome.ok());
    RC_ASSERT(outcome->payload_bytes() == sizes[i]);
    RC_ASSERT(outcome->message().back() == static_cast<std::byte>(i));
  }
}

TEST(MessageStream, EndsAtEveryFlippedBitOfAHeader) {
  for (const Bytes& right : {stream_with(3, 100, 1), stream_of_a_beat()}) {
    for (std::size_t bit = 0; bit < 8 * kStreamHeaderBytes; ++bit) {
      Bytes stream = right;
      stream[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      stream.push_back(std::byte{0});
      Receiver receiver;
      auto receive = receiver.recv(3, 100);
      EXPECT_EQ(receiver.feed(stream).size(), stream.size() - kStreamHeaderBytes) << bit;
      EXPECT_THAT(receiver.error(), HasSubstr("damaged in transit")) << bit;
      EXPECT_FALSE(receive.done());
    }
  }
}

class SenselessHeader : public testing::TestWithParam<std::pair<std::uint64_t, std::uint64_t>> {};

TEST_P(SenselessHeader, EndsTheStream) {
  const auto [tag, message_bytes] = GetParam();
  Bytes stream(kStreamHeaderBytes + 1);
  write_stream_header(tag, message_bytes, std::span(stream).first<kStreamHeaderBytes>());
  Receiver receiver;
  EXPECT_EQ(receiver.feed(stream).size(), 1U);
  EXPECT_THAT(receiver.error(), HasSubstr("malformed message"));
}

// A piece that is longer than the rest of the message, or other bulk messages.
TEST(MessageStream, EndsAtWhatMakesNoSenseInTheMidstOfBulk) {
  const std::vector<std::pair<Tag, std::uint64_t>> senseless = {
      {kPieceTag, 565}, {kBulkTag | 3, 64}, {kBulkTag | 4, 64}};
  for (const auto& [tag, bytes] : senseless) {
    SendQueue queue(Rank{1});
    queue.set_piece_bytes(500);
    (void)queue.push(kBulkTag | 3, message(1000, 1));
    Receiver receiver;
    EXPECT_TRUE(receiver.feed(stream_of_one(queue)).empty());
    Bytes stream(kStreamHeaderBytes + 1);
    write_stream_header(tag, bytes, std::span(stream).first<kStreamHeaderBytes>());
    EXPECT_EQ(receiver.feed(stream).size(), 1U);
    EXPECT_THAT(receiver.error(), HasSubstr("malformed message"));
  }
}

INSTANTIATE_TEST_SUITE_P(,
                         SenselessHeader,
                         testing::Values(std::pair{kHeartbeatTag, 64},
                                         std::pair{1, 0},
                                         std::pair{1, 63},
                                         std::pair{1, ~0ULL},
                                         std::pair{1, (1ULL << 40) + 1}));

}  // namespace
}  // namespace motley

// Messages through SendQueue and MessageReader into a Mailbox, as a stream that is cut anywhere.
#include "comm/transport/message_stream.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "support/property.h"
#include "support/rank_group.h"

namespace motley {
namespace {

using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

Buffer message(std::size_t payload_bytes, std::uint8_t fill) {
  Buffer buffer(payload_bytes);
  buffer.set_payload_bytes(payload_bytes);
  std::ranges::fill(buffer.message(), std::byte{fill});
  return buffer;
}

Bytes stream_of(SendQueue& queue) {
  Bytes stream;
  for (auto pieces = queue.pieces(); !pieces[0].empty() || !pieces[1].empty();
       pieces = queue.pieces()) {
    for (const auto& piece : pieces) stream.insert(stream.end(), piece.begin(), piece.end());
    queue.taken(pieces[0].size() + pieces[1].size());
  }
  return stream;
}

class Receiver {
 public:
  explicit Receiver(std::uint64_t early_bytes_max = 1 << 20) : mailbox_(Rank{0}, early_bytes_max) {}

  Pending recv(Tag tag, std::size_t payload_bytes_max) {
    auto posted = mailbox_.recv(tag, Buffer(payload_bytes_max));
    woken_ = woken_ || posted.wakes_reader;
    return std::move(posted.pending);
  }

  // Feeds the stream in pieces of at most `step` bytes; returns what there was no place for.
  Bytes feed(const Bytes& stream, std::size_t step = 1 << 20) {
    std::size_t at = 0;
    while (at < stream.size()) {
      const auto room = reader_.room();
      if (!room.ok()) {
        error_ = room.error().cause;
        break;
      }
      if (room->empty()) break;
      const std::size_t count = std::min({step, room->size(), stream.size() - at});
      std::memcpy(room->data(), stream.data() + at, count);
      reader_.fill(count);
      at += count;
    }
    return {stream.begin() + static_cast<std::ptrdiff_t>(at), stream.end()};
  }

  Mailbox& mailbox() { return mailbox_; }

  [[nodiscard]] bool woken() const { return woken_; }

  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  Mailbox mailbox_;
  MessageReader reader_{mailbox_};
  bool woken_ = false;
  std::string error_;
};

Bytes stream_with(Tag tag, std::size_t payload_bytes, std::uint8_t fill) {
  SendQueue queue(Rank{1});
  (void)queue.push(tag, message(payload_bytes, fill));
  return stream_of(queue);
}

Bytes stream_of_a_beat() {
  SendQueue queue(Rank{1});
  queue.push_beat();
  return stream_of(queue);
}

void expect_message(Pending& pending, std::size_t payload_bytes, std::uint8_t fill) {
  ASSERT_TRUE(pending.done());
  auto outcome = pending.wait(soon(), "a message");
  ASSERT_TRUE(outcome.ok()) << describe(outcome.error());
  EXPECT_EQ(outcome->payload_bytes(), payload_bytes);
  EXPECT_TRUE(std::ranges::all_of(outcome->message(),
                                  [&](std::byte byte) { return byte == std::byte{fill}; }));
}

// The example of docs/formats/tcp.md.
TEST(MessageStream, HasTheDocumentedBytes) {
  const Bytes stream = stream_with(0x0102030405, 1, 9);
  ASSERT_EQ(stream.size(), 16U + 64 + 1);
  const std::vector<int> header = {5, 4, 3, 2, 1, 0, 0x41, 0x57, 65, 0, 0, 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < header.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(stream[i]), header[i]) << i;
  }
}

TEST(MessageStream, ABeatIsNothingToTheReceiver) {
  SendQueue queue(Rank{1});
  EXPECT_TRUE(queue.idle());
  queue.push_beat();
  EXPECT_FALSE(queue.idle());
  Receiver receiver;
  auto receive = receiver.recv(4, 10);
  EXPECT_TRUE(receiver.feed(stream_of(queue)).empty());
  EXPECT_TRUE(queue.idle());
  EXPECT_FALSE(receive.done());
  receiver.feed(stream_with(4, 10, 2));
  expect_message(receive, 10, 2);
}

TEST(MessageStream, GivesTheBufferBackOnceItHasBeenTaken) {
  SendQueue queue(Rank{1});
  auto sent = queue.push(3, message(100, 1));
  EXPECT_TRUE(sent.wakes_writer);
  EXPECT_FALSE(queue.push(3, message(100, 1)).wakes_writer);
  queue.taken(queue.pieces()[0].size());
  EXPECT_FALSE(sent.pending.done());
  queue.taken(queue.pieces()[1].size());
  expect_message(sent.pending, 100, 1);
}

// Returns its first payload byte.
std::uint8_t write_one(SendQueue& queue) {
  const auto pieces = queue.pieces();
  const auto fill = std::to_integer<std::uint8_t>(pieces[1].back());
  queue.taken(pieces[0].size() + pieces[1].size());
  return fill;
}

TEST(MessageStream, BulkLetsAllElseGoFirstButForWhatIsUnderWay) {
  SendQueue queue(Rank{1});
  (void)queue.push(kBulkTag | 3, message(1000, 1));
  (void)queue.push(kBulkTag | 3, message(1000, 2));
  queue.taken(queue.pieces()[0].size());  // a part of the first has left
  (void)queue.push(3, message(10, 3));
  (void)queue.push(2, message(10, 4));
  (void)queue.push(kBulkTag | 2, message(1000, 5));
  std::vector<int> order(5);
  for (int& fill : order) fill = write_one(queue);
  EXPECT_EQ(order, (std::vector{1, 3, 4, 2, 5}));
  EXPECT_TRUE(queue.pieces()[0].empty());
}

TEST(MessageStream, EndsBulkToo) {
  SendQueue queue(Rank{1});
  auto bulk = queue.push(kBulkTag | 3, message(1000, 1));
  auto urgent = queue.push(3, message(1000, 2));
  queue.lose("it left");
  EXPECT_FALSE(bulk.pending.wait(soon(), "a send").ok());
  EXPECT_FALSE(urgent.pending.wait(soon(), "a send").ok());
}

// Pushed and written in any order: each tag keeps its order, and no bulk begins while anything else
// waits.
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
  RC_ASSERT(queue.pieces()[0].empty());
}

RC_GTEST_PROP(MessageStreamProperty, ArrivesHoweverItIsCut, ()) {
  const auto sizes =
      *rc::gen::container<std::vector<std::uint16_t>>(8, rc::gen::arbitrary<std::uint16_t>());
  const auto tags =
      *rc::gen::container<std::vector<std::uint8_t>>(8, rc::gen::inRange<std::uint8_t>(0, 3));
  const auto step = *rc::gen::inRange<std::size_t>(1, 5000);
  const auto posted_before =
      *rc::gen::container<std::vector<std::uint8_t>>(8, rc::gen::inRange<std::uint8_t>(0, 2));
  SendQueue queue(Rank{1});
  Receiver receiver;
  std::vector<Pending> receives(8);
  for (std::size_t i = 0; i < 8; ++i) {
    (void)queue.push(tags[i], message(sizes[i], static_cast<std::uint8_t>(i)));
  }
  // Within a tag receives are posted in order: those before come first.
  std::vector<bool> late_tag(3, false);
  for (std::size_t i = 0; i < 8; ++i) {
    late_tag[tags[i]] = late_tag[tags[i]] || posted_before[i] == 0;
    if (!late_tag[tags[i]]) receives[i] = receiver.recv(tags[i], 70'000);
  }
  RC_ASSERT(receiver.feed(stream_of(queue), step).empty());
  for (std::size_t i = 0; i < 8; ++i) {
    if (!receives[i].valid()) receives[i] = receiver.recv(tags[i], 70'000);
    auto outcome = receives[i].wait(soon(), "a message");
    RC_ASSERT(outcome.ok());
    RC_ASSERT(outcome->payload_bytes() == sizes[i]);
    RC_ASSERT(outcome->message().back() == static_cast<std::byte>(i));
  }
}

TEST(Mailbox, WaitsWhileEarlyMessagesFillTheirShare) {
  Receiver receiver(/*early_bytes_max=*/3000 + 2 * kEarlyMessageBytes);
  EXPECT_TRUE(receiver.feed(stream_with(1, 1000, 1)).empty());
  EXPECT_TRUE(receiver.feed(stream_with(2, 1000, 2)).empty());
  const Bytes left = receiver.feed(stream_with(3, 1000, 3));
  EXPECT_EQ(left.size(), 1064U);  // its header was read
  EXPECT_FALSE(receiver.woken());
  auto first = receiver.recv(1, 1000);
  EXPECT_TRUE(receiver.woken());
  expect_message(first, 1000, 1);
  EXPECT_TRUE(receiver.feed(left).empty());
  auto third = receiver.recv(3, 1000);
  expect_message(third, 1000, 3);
}

// Whoever has the secret and sends messages that nobody asked for, of whatever size and tag, fills
// the share and then waits.
TEST(Mailbox, KeepsNoMoreOfAnyPeerThanItsShare) {
  constexpr std::size_t kShare = 1 << 20;
  for (const std::size_t payload : {0, 1, 1000, 100'000, 1 << 20}) {
    Receiver receiver(kShare);
    std::size_t taken = 0;
    while (receiver.feed(stream_with(taken, payload, 1)).empty()) ++taken;
    EXPECT_LE(taken * (payload + kFrameHeaderBytes + kEarlyMessageBytes), kShare) << payload;
    EXPECT_GE((taken + 1) * (payload + kFrameHeaderBytes + kEarlyMessageBytes), kShare) << payload;
  }
}

TEST(Mailbox, TakesAMessageLargerThanThatShareOnceItIsAskedFor) {
  Receiver receiver(/*early_bytes_max=*/100);
  const Bytes left = receiver.feed(stream_with(1, 1000, 1));
  EXPECT_EQ(left.size(), 1064U);
  auto receive = receiver.recv(1, 1000);
  EXPECT_TRUE(receiver.woken());
  EXPECT_TRUE(receiver.feed(left).empty());
  expect_message(receive, 1000, 1);
}

TEST(Mailbox, TakesNoMemoryForAMessageThatIsTooLong) {
  Receiver receiver(/*early_bytes_max=*/100);
  auto receive = receiver.recv(1, 10);
  EXPECT_TRUE(receiver.feed(stream_with(1, 1 << 20, 1)).empty());
  const auto outcome = receive.wait(soon(), "a message");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kCorrupt);
  auto next = receiver.recv(1, 10);
  receiver.feed(stream_with(1, 10, 2));
  expect_message(next, 10, 2);
}

TEST(Mailbox, DeliversAMessageThatWasAskedForWhileItCame) {
  Receiver receiver;
  const Bytes stream = stream_with(1, 1000, 1);
  const auto half = stream.begin() + 500;
  receiver.feed({stream.begin(), half});
  auto receive = receiver.recv(1, 1000);
  EXPECT_FALSE(receive.done());
  receiver.feed({half, stream.end()});
  expect_message(receive, 1000, 1);
}

TEST(Mailbox, KeepsWhatCameBeforeThePeerWasLost) {
  Receiver receiver;
  receiver.feed(stream_with(1, 10, 1));
  auto waiting = receiver.recv(2, 10);
  receiver.mailbox().lose("it closed the connection");
  const auto outcome = waiting.wait(soon(), "a message");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().cause, "it closed the connection");
  auto early = receiver.recv(1, 10);
  expect_message(early, 10, 1);
  EXPECT_FALSE(receiver.recv(1, 10).wait(soon(), "a message").ok());
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
      EXPECT_THAT(receiver.error(), HasSubstr("damaged on the way")) << bit;
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
  EXPECT_THAT(receiver.error(), HasSubstr("makes no sense"));
}

INSTANTIATE_TEST_SUITE_P(,
                         SenselessHeader,
                         testing::Values(std::pair{kBeatTag, 64},
                                         std::pair{1, 0},
                                         std::pair{1, 63},
                                         std::pair{1, ~0ULL},
                                         std::pair{1, (1ULL << 40) + 1}));

}  // namespace
}  // namespace motley

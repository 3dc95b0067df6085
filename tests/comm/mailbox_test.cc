// Which messages of a stream a Mailbox stores, drops and delivers.
#include "comm/transport/mailbox.h"

#include <gtest/gtest.h>

#include "comm/streams.h"

namespace motley {
namespace {

TEST(Mailbox, WaitsWhileEarlyMessagesFillTheirShare) {
  Receiver receiver(/*unexpected_bytes_max=*/3000 + 2 * kUnexpectedMessageBytes);
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

// A peer with the secret that sends unexpected messages, of any size and tag, can only fill its
// share; then it has to wait.
TEST(Mailbox, KeepsNoMoreOfAnyPeerThanItsShare) {
  constexpr std::size_t kShare = 1 << 20;
  for (const std::size_t payload : {0, 1, 1000, 100'000, 1 << 20}) {
    Receiver receiver(kShare);
    std::size_t taken = 0;
    while (receiver.feed(stream_with(taken, payload, 1)).empty()) ++taken;
    EXPECT_LE(taken * (payload + kFrameHeaderBytes + kUnexpectedMessageBytes), kShare) << payload;
    EXPECT_GE((taken + 1) * (payload + kFrameHeaderBytes + kUnexpectedMessageBytes), kShare)
        << payload;
  }
}

TEST(Mailbox, TakesAMessageLargerThanThatShareOnceItIsAskedFor) {
  Receiver receiver(/*unexpected_bytes_max=*/100);
  const Bytes left = receiver.feed(stream_with(1, 1000, 1));
  EXPECT_EQ(left.size(), 1064U);
  auto receive = receiver.recv(1, 1000);
  EXPECT_TRUE(receiver.woken());
  EXPECT_TRUE(receiver.feed(left).empty());
  expect_message(receive, 1000, 1);
}

TEST(Mailbox, TakesNoMemoryForAMessageThatIsTooLong) {
  Receiver receiver(/*unexpected_bytes_max=*/100);
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

}  // namespace
}  // namespace motley

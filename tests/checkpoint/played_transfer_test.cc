// One end of a transfer against a peer that the test emulates, frame by frame.
#include <cstring>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/transfer/file_messages.h"
#include "tests/checkpoint/transfer_fixture.h"

namespace motley {
namespace {

using testing::bytes_of_size;
using testing::fault_of;
using testing::GivenFile;
using ::testing::HasSubstr;
using testing::kGiver;
using testing::kPartBytes;
using testing::kSmallParts;
using testing::kTaker;
using testing::RankPair;
using testing::TempFolder;

constexpr std::int64_t kStep = 100;
constexpr TransferRate kYielding{kPartBytes, 3, true};

// A real end in its own thread, and its result.
class PlayedTransfer : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path target() const { return folder_.path() / "target"; }

  void start_sender(const StallTimeout& stall_timeout = StallTimeout(20),
                    const TransferRate& pace = kSmallParts) {
    thread_ = std::jthread([this, stall_timeout, pace](const std::stop_token& stop) {
      FrameLink link = giver_;  // a copy, so it counts the test's frames too
      outcome_ =
          send_file(link, kTaker, file_.order, file_.path, pace, stall_timeout, stop, nullptr);
    });
  }

  void start_receiver(const StallTimeout& stall_timeout = StallTimeout(20)) {
    thread_ = std::jthread([this, stall_timeout](const std::stop_token& stop) {
      FrameLink link = ranks_.link(kTaker);
      outcome_ = receive_file(link, kGiver, file_.order, target(), kSmallParts, stall_timeout, stop,
                              nullptr);
    });
  }

  // REQUIRES: an end has been started.
  Result<void> ended() {
    thread_.join();
    return outcome_;
  }

  // As the sender: sends a part of this kind and content.
  void say(std::int64_t part, PartKind kind, const std::string& content) {
    Buffer buffer(part_buffer_bytes(content.size()));
    std::ranges::copy(std::as_bytes(std::span(content)),
                      begin_part(buffer, kind, content.size()).begin());
    say_raw(part, std::move(buffer));
  }

  void say_raw(std::int64_t part, Buffer buffer) {
    (void)giver_.send(kTaker, FrameId::file_part(0, part, kStep), std::move(buffer));
  }

  void say_size(std::uint64_t bytes) {
    std::string content(sizeof bytes, '\0');
    std::memcpy(content.data(), &bytes, sizeof bytes);
    say(0, PartKind::kMoreFollow, content);
  }

  AckKind hear_answer(std::int64_t part) {
    const auto message =
        giver_.recv(kTaker, FrameId::file_ack(0, part, kStep), Buffer(ack_buffer_bytes()))
            .wait(soon());
    EXPECT_OK(message);
    const auto answer = read_ack(message->payload());
    EXPECT_OK(answer);
    return answer->kind;
  }

  // As the receiver: the kind of the part; nullopt if none arrives within `within_s`.
  std::optional<PartKind> hear(std::int64_t part, double within_s = 20) {
    auto message =
        taker_
            .recv(kGiver, FrameId::file_part(0, part, kStep), Buffer(part_buffer_bytes(kPartBytes)))
            .wait(Deadline::after_s(within_s));
    if (!message.ok()) return {};
    const auto read = read_part(std::as_const(*message).payload());
    EXPECT_OK(read);
    return read->kind;
  }

  void answer(std::int64_t part, const PartAck& words) { answer_raw(part, ack_buffer(words)); }

  void answer_raw(std::int64_t part, Buffer buffer) {
    (void)taker_.send(kGiver, FrameId::file_ack(0, part, kStep), std::move(buffer));
  }

  // The receiver has ended with kCorrupt, has reported to the sender that it is gone, and left no
  // file.
  void expect_gone(std::int64_t part, const std::string& words) {
    EXPECT_EQ(hear_answer(part), AckKind::kGone);
    EXPECT_CORRUPT(ended(), words);
    EXPECT_FALSE(std::filesystem::exists(target()));
  }

  RankPair ranks_{"inproc"};
  FrameLink giver_ = ranks_.link(kGiver);
  FrameLink taker_ = ranks_.link(kTaker);
  TempFolder folder_;
  GivenFile file_{folder_.path(), "file", bytes_of_size(20 * kPartBytes)};
  Result<void> outcome_;  // valid once the thread has ended
  std::jthread thread_;
};

// The window bounds the memory of both ends.
TEST_F(PlayedTransfer, OfASenderHasNoMorePartsUnderWayThanTheWindow) {
  start_sender();
  // This transport sends before a receive is posted; so post one receive too many.
  for (std::int64_t part = 0; part < kSmallParts.window; ++part) {
    EXPECT_EQ(hear(part), PartKind::kMoreFollow);
  }
  auto too_many = taker_.recv(kGiver, FrameId::file_part(0, kSmallParts.window, kStep),
                              Buffer(part_buffer_bytes(kPartBytes)));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(too_many.done());
  answer(0, {});
  EXPECT_OK(too_many.wait(soon()));
  EXPECT_EQ(hear(kSmallParts.window + 1, 0.05), std::nullopt);
  thread_.request_stop();
  EXPECT_FALSE(ended().ok());
}

TEST_F(PlayedTransfer, OfASenderBesideTrainingHasOnePartUnderWay) {
  start_sender(StallTimeout(20), kYielding);
  EXPECT_EQ(hear(0), PartKind::kMoreFollow);
  EXPECT_EQ(hear(1, 0.05), std::nullopt);
  thread_.request_stop();
  EXPECT_FALSE(ended().ok());
}

// A part that is delayed by frames, one that is delayed by the receiver's slow disk, and one
// without a visible reason.
TEST_F(PlayedTransfer, OfASenderBesideTrainingStaysAwayFromABusyLink) {
  start_sender(StallTimeout(20), kYielding);
  for (std::int64_t part = 0; part < 3; ++part) {
    EXPECT_EQ(hear(part), PartKind::kMoreFollow);
    answer(part, {});
  }
  constexpr double kLate_s = 0.1;
  const auto answer_late = [&](std::int64_t part, std::uint32_t took_us) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kLate_s));
    const double start_s = now_s();
    answer(part, {.took_us = took_us});
    EXPECT_EQ(hear(part + 1), PartKind::kMoreFollow);
    return now_s() - start_s;
  };
  EXPECT_EQ(hear(3), PartKind::kMoreFollow);
  Buffer frame(100'000 * kPartBytes);  // takes long on any link
  frame.set_payload_bytes(frame.payload_bytes_max());
  (void)giver_.send(kTaker, FrameId(FrameKind::kActivation, ChunkId(0), MicroId(0), kStep),
                    std::move(frame));
  EXPECT_GE(answer_late(3, 0), 4 * kLate_s);
  EXPECT_LT(answer_late(4, 100'000), 4 * kLate_s);
  EXPECT_LT(answer_late(5, 0), 4 * kLate_s);
  thread_.request_stop();
  EXPECT_FALSE(ended().ok());
}

TEST_F(PlayedTransfer, OfASenderEndsWithTheReceiversWordsOnceAllIsAnswered) {
  start_sender();
  for (std::int64_t part = 0; part < 3; ++part) EXPECT_EQ(hear(part), PartKind::kMoreFollow);
  const Error full{ErrorCode::kCorrupt, "cannot write x", "the disk is full", "free space"};
  answer(0, {});
  EXPECT_EQ(hear(3), PartKind::kMoreFollow);
  for (std::int64_t part = 1; part < 4; ++part) {
    answer(part, {.kind = AckKind::kNotWritten, .why = full});
  }
  EXPECT_EQ(hear(4), PartKind::kAborted);
  EXPECT_CORRUPT(ended(), "rank 1 refused it: cannot write x");
  EXPECT_CORRUPT(outcome_, "the disk is full");
  EXPECT_CORRUPT(outcome_, "free space");
}

TEST_F(PlayedTransfer, OfASenderEndsAtOnceWhenTheReceiverIsGone) {
  start_sender();
  EXPECT_EQ(hear(0), PartKind::kMoreFollow);
  answer(0, {.kind = AckKind::kGone, .why = {ErrorCode::kCorrupt, "the end came", "", ""}});
  const auto outcome = ended();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
  EXPECT_THAT(outcome.error().what, HasSubstr("rank 1 has disconnected: the end came"));
}

TEST_F(PlayedTransfer, OfASenderEndsWithAMalformedAnswer) {
  start_sender();
  EXPECT_EQ(hear(0), PartKind::kMoreFollow);
  Buffer none(1);
  none.set_payload_bytes(0);
  answer_raw(0, std::move(none));
  EXPECT_CORRUPT(ended(), "malformed answer");
}

TEST_F(PlayedTransfer, OfASenderWaitsForAnAnswerAsLongAsItsPatience) {
  start_sender(StallTimeout(0.05));
  EXPECT_EQ(hear(0), PartKind::kMoreFollow);
  const auto outcome = ended();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
  EXPECT_EQ(outcome.error().what,
            "sending file of step 100 to rank 1: waiting for rank 1 to receive part 0: timed out "
            "after 0.05 s");
}

TEST_F(PlayedTransfer, OfASenderEndsAtOnceWhenStopped) {
  start_sender();
  EXPECT_EQ(hear(0), PartKind::kMoreFollow);
  const double start_s = now_s();
  thread_.request_stop();
  const auto outcome = ended();
  EXPECT_LT(now_s() - start_s, 5);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kInterrupted);
  for (std::int64_t part = 1; part < kSmallParts.window; ++part) {
    EXPECT_EQ(hear(part), PartKind::kMoreFollow);
  }
  EXPECT_EQ(hear(kSmallParts.window), PartKind::kAborted);
}

TEST_F(PlayedTransfer, OfASenderWhoseFileShrinksSaysSo) {
  start_sender();
  EXPECT_EQ(hear(0), PartKind::kMoreFollow);
  std::filesystem::resize_file(file_.path, 5000);
  std::int64_t part = 0;
  for (; !outcome_.ok() || part < 20; ++part) {
    answer(part, {});
    const auto kind = hear(part + 1);
    ASSERT_TRUE(kind.has_value());
    if (*kind == PartKind::kAborted) break;
  }
  EXPECT_LE(part, 5);
  // Parts in flight are answered, or the sender would wait for the answers.
  EXPECT_CORRUPT(ended(), "it ends at byte 5000");
}

TEST_F(PlayedTransfer, OfAReceiverEndsWithAMalformedPart) {
  start_receiver();
  Buffer empty(1);
  empty.set_payload_bytes(0);
  say_raw(0, std::move(empty));
  expect_gone(0, "malformed part of a file");
}

TEST_F(PlayedTransfer, OfAReceiverEndsWithAPartWithoutBytes) {
  start_receiver();
  say_size(file_.order.file.bytes);
  EXPECT_EQ(hear_answer(0), AckKind::kWritten);
  say(1, PartKind::kMoreFollow, "");
  expect_gone(1, "malformed part of a file");
}

TEST_F(PlayedTransfer, OfAReceiverEndsWithAPartThatIsTooLong) {
  start_receiver();
  say_size(file_.order.file.bytes);
  EXPECT_EQ(hear_answer(0), AckKind::kWritten);
  say(1, PartKind::kMoreFollow, std::string(part_buffer_bytes(kPartBytes), 'x'));
  expect_gone(1, "is too long");
}

TEST_F(PlayedTransfer, OfAReceiverRefusesASizeThatIsNone) {
  start_receiver();
  say(0, PartKind::kLast, "1234567");
  EXPECT_EQ(hear_answer(0), AckKind::kNotWritten);
  EXPECT_CORRUPT(ended(), "the file's size has 7 bytes");
}

TEST_F(PlayedTransfer, OfAReceiverRefusesAnEndThatComesEarly) {
  start_receiver();
  say_size(file_.order.file.bytes);
  EXPECT_EQ(hear_answer(0), AckKind::kWritten);
  say(1, PartKind::kLast, bytes_of_size(10));
  EXPECT_EQ(hear_answer(1), AckKind::kNotWritten);
  EXPECT_CORRUPT(ended(), "19990 of its bytes are missing");
  EXPECT_FALSE(std::filesystem::exists(target()));
}

TEST_F(PlayedTransfer, OfAReceiverListensToNoMoreThanWasUnderWayWhenItRefused) {
  start_receiver();
  say_size(1);
  EXPECT_EQ(hear_answer(0), AckKind::kNotWritten);
  for (std::int64_t part = 1; part <= kSmallParts.window; ++part) {
    say(part, PartKind::kMoreFollow, "x");
    EXPECT_EQ(hear_answer(part), AckKind::kNotWritten);
  }
  say(kSmallParts.window + 1, PartKind::kMoreFollow, "x");
  expect_gone(kSmallParts.window + 1, "continues a refused transfer");
}

TEST_F(PlayedTransfer, OfAReceiverWaitsForAPartAsLongAsItsPatience) {
  start_receiver(StallTimeout(0.05));
  say_size(file_.order.file.bytes);
  EXPECT_EQ(hear_answer(0), AckKind::kWritten);
  const auto outcome = ended();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
  EXPECT_EQ(outcome.error().what,
            "receiving file of step 100 from rank 0: waiting for part 1 from rank 0: timed out "
            "after 0.05 s");
  EXPECT_FALSE(std::filesystem::exists(target()));
}

TEST_F(PlayedTransfer, OfAReceiverEndsAtOnceWhenStopped) {
  start_receiver();
  say_size(file_.order.file.bytes);
  EXPECT_EQ(hear_answer(0), AckKind::kWritten);
  const double start_s = now_s();
  thread_.request_stop();
  EXPECT_EQ(hear_answer(1), AckKind::kGone);
  const auto outcome = ended();
  EXPECT_LT(now_s() - start_s, 5);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kInterrupted);
  EXPECT_FALSE(std::filesystem::exists(target()));
}

}  // namespace
}  // namespace motley

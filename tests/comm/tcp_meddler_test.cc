// A single bit error between two ranks, anywhere from the first byte to the last: the frame
// arrives intact, or there is an error; never other data, never a hang.
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/frames/frame_link.h"
#include "comm/make_transport.h"
#include "comm/meddler.h"
#include "support/rank_group.h"

namespace motley {
namespace {

constexpr Rank kRank0{0};
constexpr Rank kRank1{1};
constexpr std::size_t kPayloadBytes = 300;

FrameId frame(int micro) {
  return {FrameKind::kGradient, ChunkId{1}, MicroId{micro}, 1};
}

Buffer payload() {
  Buffer buffer(kPayloadBytes);
  buffer.set_payload_bytes(kPayloadBytes);
  std::ranges::fill(buffer.payload(), std::byte{0x5A});
  return buffer;
}

std::unique_ptr<Transport> open(const std::string& kind, Rank rank) {
  auto transport = make_transport(options_for(kind, rank, 2));
  if (!transport.ok()) ADD_FAILURE() << describe(transport.error());
  return std::move(transport).value();
}

enum class Outcome { kArrived, kRefused, kLost };

// The outcome of the first of several frames from rank 1 to rank 0.
Outcome outcome_with(const std::string& kind, std::size_t flipped_at) {
  const auto acceptor = open(kind, kRank0);
  const Meddler meddler(acceptor->address(), flipped_at);
  const auto other = open(kind, kRank1);
  const auto met = other->connect({meddler.address(), other->address()}, soon());
  if (!met.ok()) {
    EXPECT_NE(met.error().cause, "");
    return Outcome::kRefused;
  }
  FrameLink sender(*other, kRank1, 1, 2);
  FrameLink receiver(*acceptor, kRank0, 1, 2);
  auto first = receiver.recv(kRank1, frame(0), Buffer(kPayloadBytes));
  std::vector<Pending> sent;
  for (int micro = 0; micro < 4; ++micro) {
    sent.push_back(sender.send(kRank0, frame(micro), payload()));
  }
  const auto came = first.wait(soon());
  if (!came.ok()) {
    EXPECT_THAT(came.error().what, testing::HasSubstr("micro-batch 0, step 1 from rank 1"));
    EXPECT_THAT(came.error().what, testing::Not(testing::HasSubstr("timed out")));
    return Outcome::kLost;
  }
  EXPECT_TRUE(std::ranges::equal(came->payload(), payload().payload()));
  return Outcome::kArrived;
}

struct Said {
  const char* kind;
  std::size_t bytes;  // approximate: sent by the connecting end up to its first frame
  bool with_frames;   // false: only the bytes before the frames
};

class FlippedBit : public testing::TestWithParam<Said> {};

TEST_P(FlippedBit, IsAnErrorOrWithoutEffect) {
  constexpr std::size_t kPlaces = 60;
  const auto [kind, said_bytes, with_frames] = GetParam();
  std::size_t lost = 0;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    SCOPED_TRACE(place * said_bytes / kPlaces);
    if (outcome_with(kind, place * said_bytes / kPlaces) == Outcome::kLost) ++lost;
  }
  if (with_frames) {
    EXPECT_GT(lost, kPlaces / 4) << "most bits are those of the frame";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         FlippedBit,
                         testing::Values(Said{"tcp", 428, true},
                                         Said{"tls", 916, true},
                                         Said{"local", 500, false}),
                         [](const auto& each) { return each.param.kind; });

TEST(UnflippedBit, LetsTheFrameArrive) {
  for (const char* kind : {"tcp", "tls", "local"}) {
    EXPECT_EQ(outcome_with(kind, Meddler::kNever), Outcome::kArrived) << kind;
  }
}

}  // namespace
}  // namespace motley

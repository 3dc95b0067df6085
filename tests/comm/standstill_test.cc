// A message that stalls because its receiver has no space for it. The send times out only if the
// group makes no progress, on every transport with such a timeout.
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "comm/make_transport.h"
#include "tests/support/rank_group.h"

namespace motley {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMessageBytes = std::size_t{48} << 20;
constexpr int kMessages = 7;  // more than a receiver stores without a posted receive
constexpr double kStallTimeout_s = 0.7;

class Standstill : public testing::TestWithParam<std::string> {
 protected:
  Standstill() {
    std::vector<std::string> addresses;
    for (Rank rank{0}; rank.value < 2; ++rank.value) {
      TransportOptions options = options_for(GetParam(), rank, 2);
      options.stall_timeout = StallTimeout(kStallTimeout_s, group_);
      auto transport = make_transport(options);
      if (!transport.ok()) ADD_FAILURE() << describe(transport.error());
      addresses.push_back((*transport)->address());
      ranks_.push_back(std::move(transport).value());
    }
    std::jthread other([&] { EXPECT_TRUE(ranks_[1]->connect(addresses, soon()).ok()); });
    EXPECT_TRUE(ranks_[0]->connect(addresses, soon()).ok());
  }

  // Rank 0 sends messages for which rank 1 posts no receive.
  void send_all() {
    for (int i = 0; i < kMessages; ++i) {
      Buffer buffer(kMessageBytes);
      buffer.set_payload_bytes(kMessageBytes);
      sent_.push_back(ranks_[0]->send(Rank{1}, Tag(i), std::move(buffer)));
    }
  }

  ProgressClock group_;
  std::vector<std::unique_ptr<Transport>> ranks_;
  std::vector<Pending> sent_;
};

TEST_P(Standstill, EndsWhenNobodyGetsOn) {
  send_all();
  EXPECT_FALSE(sent_.back().wait(soon(), "the last").ok());
}

// As while the receiver saves.
TEST_P(Standstill, LastsAsLongAsTheGroupGetsOn) {
  send_all();
  for (int i = 0; i < 25; ++i) {
    std::this_thread::sleep_for(100ms);
    group_.touch();
  }
  for (int i = 0; i < kMessages; ++i) {
    const auto came =
        ranks_[1]->recv(Rank{0}, Tag(i), Buffer(kMessageBytes)).wait(soon(), "a message");
    ASSERT_TRUE(came.ok()) << describe(came.error());
    group_.touch();
  }
}

INSTANTIATE_TEST_SUITE_P(,
                         Standstill,
                         testing::ValuesIn([] {
                           std::vector<std::string> kinds{"tcp", "local"};
                           for (const std::string& kind : transport_kinds()) {
                             if (kind == "gloo") kinds.push_back(kind);
                           }
                           return kinds;
                         }()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace motley

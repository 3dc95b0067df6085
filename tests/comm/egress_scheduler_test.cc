// The order of sending, with a simulated clock and network.
#include "comm/transport/egress_scheduler.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "support/property.h"

namespace motley {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = EgressScheduler::Kind;

constexpr std::uint64_t kRate = 100;  // bytes per microsecond that the machine can send

const Rank kFirst{1};
const Rank kSecond{2};
const Rank kThird{3};

class EgressScheduling : public testing::Test {
 protected:
  struct Flow {
    Rank to;
    std::uint64_t rate = 0;  // bytes per microsecond
  };

  bool may_send(Rank to) { return egress_.may_begin(to, Kind::kUrgent); }

  bool may_send_bulk(Rank to) { return egress_.may_begin(to, Kind::kBulk); }

  // Advances the clock; these peers receive at their rates meanwhile. Returns the released ranks.
  std::vector<Rank> pass(std::chrono::microseconds time, const std::vector<Flow>& flows) {
    std::vector<Rank> released;
    for (; time > 0us; time -= EgressScheduler::kBetweenChecks) {
      now_ += EgressScheduler::kBetweenChecks;
      for (auto& sent : sent_) sent.sent_bytes = sent.acknowledged_bytes;
      for (const Flow& flow : flows) {
        auto& sent = sent_[flow.to.index()];
        sent.acknowledged_bytes +=
            flow.rate * std::chrono::microseconds(EgressScheduler::kBetweenChecks).count();
        sent.sent_bytes = sent.acknowledged_bytes + 1;
      }
      const auto more = poll();
      released.insert(released.end(), more.begin(), more.end());
    }
    return released;
  }

  std::vector<Rank> poll() { return egress_.poll(now_, sent_).released; }

  // A trial phase: all send at once, at kRate in total.
  void try_out() {
    egress_.enqueue(kFirst);
    egress_.enqueue(kSecond);
    EXPECT_FALSE(may_send(kSecond));
    EXPECT_THAT(poll(), ElementsAre(kSecond));
    pass(20ms, {{kFirst, kRate / 2}, {kSecond, kRate / 2}});
    egress_.dequeue(kFirst);
    egress_.dequeue(kSecond);
    poll();
    looks_asked_ = 0;
  }

  int looks_asked_ = 0;
  EgressScheduler egress_{4, [this] { ++looks_asked_; }};
  SteadyClock::time_point now_{1h};
  std::vector<EgressScheduler::Sent> sent_{4};  // [Rank]
};

TEST_F(EgressScheduling, AreInTheOrderOfSending) {
  try_out();
  egress_.enqueue(kSecond);
  egress_.enqueue(kFirst);
  egress_.enqueue(kSecond);
  EXPECT_TRUE(may_send(kSecond));
  EXPECT_FALSE(may_send(kFirst));
  EXPECT_EQ(looks_asked_, 1);
  EXPECT_THAT(poll(), IsEmpty());
  egress_.dequeue(kSecond);
  EXPECT_EQ(looks_asked_, 2);
  EXPECT_FALSE(may_send(kSecond)) << "its second one came after the first peer's";
  EXPECT_THAT(poll(), ElementsAre(kFirst));
  EXPECT_TRUE(may_send(kFirst));
  egress_.dequeue(kFirst);
  EXPECT_THAT(poll(), ElementsAre(kSecond));
}

TEST_F(EgressScheduling, LetBulkWaitForAllThatIsUrgent) {
  try_out();
  EXPECT_TRUE(may_send_bulk(kFirst));
  egress_.enqueue(kSecond);
  EXPECT_FALSE(may_send_bulk(kFirst));
  EXPECT_FALSE(may_send_bulk(kThird));
  egress_.dequeue(kSecond);
  EXPECT_THAT(poll(), ElementsAre(kFirst, kThird));
  EXPECT_TRUE(may_send_bulk(kFirst));
  EXPECT_TRUE(may_send_bulk(kThird));
}

TEST_F(EgressScheduling, AreNotKeptForAPeerThatIsGone) {
  try_out();
  egress_.enqueue(kFirst);
  egress_.enqueue(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  egress_.forget_peer(kFirst);
  EXPECT_EQ(looks_asked_, 2);
  EXPECT_THAT(poll(), ElementsAre(kSecond));
}

TEST_F(EgressScheduling, NobodyAsksForLooksWhileNobodyWaits) {
  egress_.enqueue(kFirst);
  EXPECT_TRUE(may_send(kFirst));
  egress_.dequeue(kFirst);
  EXPECT_TRUE(may_send_bulk(kFirst));
  EXPECT_EQ(looks_asked_, 0);
  EXPECT_FALSE(egress_.poll(now_, sent_).is_due_again);
}

TEST_F(EgressScheduling, BeginWithATryInWhichAllSend) {
  egress_.enqueue(kFirst);
  egress_.enqueue(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  EXPECT_THAT(poll(), ElementsAre(kSecond));
  egress_.enqueue(kThird);
  EXPECT_TRUE(may_send(kThird));
  EXPECT_TRUE(may_send_bulk(Rank{0}));
  pass(20ms, {{kFirst, kRate / 2}, {kSecond, kRate / 2}});
  EXPECT_FALSE(may_send(kThird)) << "enough was seen";
}

// With a single peer a trial would only measure that peer's rate.
TEST_F(EgressScheduling, ATryNeedsTwoPeersToWhomSomethingIsUnderWay) {
  egress_.enqueue(kFirst);
  egress_.enqueue(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  poll();
  pass(490ms, {{kFirst, kRate}});
  EXPECT_TRUE(may_send(kSecond));
  pass(10ms, {{kFirst, kRate}});
  EXPECT_FALSE(may_send(kSecond)) << "it ends all the same";
  EXPECT_THAT(pass(100ms, {{kFirst, 1}}), IsEmpty()) << "and no peer is judged by it";
}

TEST_F(EgressScheduling, AreTriedAgainFromTimeToTime) {
  try_out();
  egress_.enqueue(kFirst);
  egress_.enqueue(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  poll();
  EXPECT_THAT(pass(EgressScheduler::kBetweenTrials - 50ms, {{kFirst, kRate}}), IsEmpty());
  EXPECT_THAT(pass(50ms, {{kFirst, kRate}}), ElementsAre(kSecond));
}

TEST_F(EgressScheduling, PassOverAPeerThatTakesNothing) {
  try_out();
  egress_.enqueue(kFirst);
  egress_.enqueue(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  poll();
  EXPECT_THAT(pass(195ms, {{kThird, 1}}), IsEmpty()) << "others' small messages go on";
  EXPECT_THAT(pass(5ms, {{kThird, 1}}), ElementsAre(kSecond));
  EXPECT_TRUE(may_send(kFirst)) << "it may take more at any time";
  EXPECT_TRUE(may_send(kSecond));
}

TEST_F(EgressScheduling, PassOverAPeerThatTakesLessThanTheMachineCanSend) {
  try_out();
  const auto transmit = [&](Rank to, std::uint64_t rate) {
    egress_.enqueue(to);
    egress_.enqueue(kThird);
    EXPECT_FALSE(may_send(kThird));
    poll();
    const auto released = pass(100ms, {{to, rate}});
    egress_.forget_peer(to);
    egress_.forget_peer(kThird);
    return released;
  };
  EXPECT_THAT(transmit(kFirst, kRate), IsEmpty());
  EXPECT_THAT(transmit(kFirst, kRate * 9 / 10), IsEmpty());
  EXPECT_THAT(transmit(kSecond, kRate / 2), ElementsAre(kThird));
  EXPECT_THAT(transmit(kFirst, kRate), IsEmpty()) << "others keep their turns";
}

// Also if no sender waits meanwhile.
TEST_F(EgressScheduling, ComeBackToAPeerThatWasPassedOver) {
  try_out();
  egress_.enqueue(kFirst);
  egress_.enqueue(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  poll();
  EXPECT_THAT(pass(200ms, {}), ElementsAre(kSecond));
  now_ += EgressScheduler::kSkipTime;
  poll();
  EXPECT_FALSE(may_send(kSecond)) << "what is the first peer's is older";
}

// A machine with several peers; each receives messages as fast as its own link permits.
class PlayedNetwork {
 public:
  PlayedNetwork(std::vector<std::uint64_t> rates)
      : rates_(std::move(rates)),
        peers_(rates_.size()),
        egress_(static_cast<int>(rates_.size()), [] {}),
        sent_(rates_.size()) {}

  void send(std::size_t to, std::uint64_t bytes) {
    peers_[to].messages.emplace_back(next_++, bytes);
    egress_.enqueue(rank(to));
  }

  // Returns the numbers of the messages in the order in which they are completely sent.
  std::vector<std::size_t> run(std::size_t steps_max) {
    std::vector<std::size_t> left;
    const auto all_left = [](const Peer& peer) { return peer.messages.empty(); };
    for (std::size_t step = 0; step < steps_max && !std::ranges::all_of(peers_, all_left); ++step) {
      begin();
      move(left);
      for (std::size_t to = 0; to < peers_.size(); ++to) {
        sent_[to].sent_bytes = sent_[to].acknowledged_bytes + (peers_[to].has_begun ? 1 : 0);
      }
      const auto seen = egress_.poll(now_, sent_);
      for (const Rank released : seen.released) peers_[released.index()].waits = false;
      now_ += 5ms;
    }
    return left;
  }

 private:
  struct Peer {
    std::deque<std::pair<std::size_t, std::uint64_t>> messages;  // number, bytes left
    bool has_begun = false;
    bool waits = false;
  };

  static Rank rank(std::size_t number) { return Rank{static_cast<std::int32_t>(number)}; }

  void begin() {
    for (std::size_t to = 0; to < peers_.size(); ++to) {
      Peer& peer = peers_[to];
      if (peer.messages.empty() || peer.has_begun || peer.waits) continue;
      peer.has_begun = egress_.may_begin(rank(to), Kind::kUrgent);
      peer.waits = !peer.has_begun;
    }
  }

  // The machine's link is assigned to the peers in order, in intervals of 5 ms.
  void move(std::vector<std::size_t>& left) {
    std::uint64_t space = kRate * 5000;
    for (std::size_t to = 0; to < peers_.size(); ++to) {
      Peer& peer = peers_[to];
      if (!peer.has_begun) continue;
      auto& [number, bytes] = peer.messages.front();
      const std::uint64_t moved = std::min({space, bytes, rates_[to] * 5000});
      space -= moved;
      bytes -= moved;
      sent_[to].acknowledged_bytes += moved;
      if (bytes > 0) continue;
      left.push_back(number);
      peer.messages.pop_front();
      peer.has_begun = false;
      egress_.dequeue(rank(to));
    }
  }

  std::vector<std::uint64_t> rates_;  // [peer], bytes per microsecond
  std::vector<Peer> peers_;
  EgressScheduler egress_;
  std::vector<EgressScheduler::Sent> sent_;  // [peer]
  std::size_t next_ = 0;
  SteadyClock::time_point now_{1h};
};

RC_GTEST_PROP(SendTurnsProperty, EverythingLeavesWhoeverIsSlow, ()) {
  const auto rates = *rc::gen::container<std::vector<std::uint64_t>>(
      static_cast<std::size_t>(*rc::gen::inRange(2, 6)),
      rc::gen::element<std::uint64_t>(1, 10, kRate / 2, kRate, kRate));
  PlayedNetwork network(rates);
  const int count = *rc::gen::inRange(1, 60);
  for (int i = 0; i < count; ++i) {
    network.send(*rc::gen::inRange<std::size_t>(0, rates.size()),
                 *rc::gen::inRange<std::uint64_t>(16'384, 4'000'000));
  }
  // Enough time to send all of them one after another at the slowest rate.
  RC_ASSERT(network.run(static_cast<std::size_t>(count) * 1000).size() ==
            static_cast<std::size_t>(count));
}

// Except in trial phases, in which all send at once.
RC_GTEST_PROP(SendTurnsProperty, KeepTheOrderWhereEveryPeerFillsTheLink, ()) {
  const auto peers = *rc::gen::inRange<std::size_t>(2, 6);
  PlayedNetwork network(std::vector<std::uint64_t>(peers, kRate));
  for (std::size_t to = 0; to < peers; ++to) network.send(to, 4'000'000);
  const auto tried = network.run(10'000);
  RC_ASSERT(tried.size() == peers);
  const int count = *rc::gen::inRange(1, 60);
  for (int i = 0; i < count; ++i) {
    network.send(*rc::gen::inRange<std::size_t>(0, peers), 500'000);
  }
  const auto left = network.run(static_cast<std::size_t>(count) * 1000);
  RC_ASSERT(left.size() == static_cast<std::size_t>(count));
  RC_ASSERT(std::ranges::is_sorted(left));
}

}  // namespace
}  // namespace motley

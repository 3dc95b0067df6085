#include "partitioner/simulate/shared_links.h"

#include <limits>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/partitioner/planning_fixtures.h"

namespace motley {
namespace {

// Machines m0, m1, m2 with two devices each: ranks 0 and 1 on m0, 2 and 3 on m1, 4 and 5 on m2.
class SharedLinksTest : public testing::Test {
 protected:
  SharedLinksTest() {
    problem_.layers = {{}};
    problem_.machines.resize(3);
    cluster_ = problem_.cluster();
    cluster_.network = {8, 0.5};
    cluster_.local = {80, 0.25};
    for (Machine& machine : cluster_.machines) machine.devices = {"cpu", "cpu"};
  }

  // The arrival of each message, [message]. They are sent at the times in `sent_s_`.
  std::vector<double> arrivals(const std::vector<StepMessage>& messages) {
    cost_ = *CostModel::make(problem_.model(), cluster_, problem_.profile(), 1,
                             {.moments_per_parameter = 2});
    SharedLinks shared(*cost_, slots_, messages);
    std::vector<double> arrivals(messages.size());
    std::size_t next = 0;
    const auto sent_s = [&](std::size_t n) { return n < sent_s_.size() ? sent_s_[n] : 0; };
    while (next < messages.size() || shared.next_s() < kNever) {
      if (next < messages.size() && sent_s(next) <= shared.next_s()) {
        shared.send(next, sent_s(next));
        ++next;
      } else if (const auto number = shared.run_next()) {
        arrivals[*number] = shared.occupation(*number).arrival_s;
        crossings_[*number] = shared.occupation(*number);
      }
    }
    return arrivals;
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  Problem problem_;
  Cluster cluster_;
  std::optional<CostModel> cost_;
  const std::vector<int> slots_ = {0, 1, 2, 3, 4, 5};
  std::vector<double> sent_s_;  // [message] in order; 0 for messages beyond its end
  std::map<std::size_t, SharedLinks::LinkOccupation> crossings_;
};

StepMessage value(std::uint32_t from, std::uint32_t to) {
  return {80, from, to};
}

StepMessage sum(std::uint32_t from, std::uint32_t to) {
  return {80, from, to, true};
}

using Times = std::vector<double>;

TEST_F(SharedLinksTest, OneMessageTakesItsBytesAndTheLatency) {
  EXPECT_EQ(arrivals({value(0, 2)}), Times({10.5}));
  EXPECT_EQ(arrivals({sum(0, 2)}), Times({10.5}));
}

TEST_F(SharedLinksTest, TwoSendersShareTheReceiversDownlink) {
  EXPECT_EQ(arrivals({value(0, 4), value(2, 5)}), Times({10.5, 20.5}));
  EXPECT_EQ(arrivals({sum(0, 4), sum(2, 5)}), Times({10.5, 20.5}));
}

TEST_F(SharedLinksTest, TwoReceiversShareTheSendersUplink) {
  EXPECT_EQ(arrivals({value(0, 2), value(1, 4)}), Times({10.5, 20.5}));
  EXPECT_EQ(arrivals({sum(0, 2), sum(1, 4)}), Times({10.5, 20.5}));
}

TEST_F(SharedLinksTest, BothDirectionsAreFree) {
  EXPECT_EQ(arrivals({value(0, 2), value(2, 0)}), Times({10.5, 10.5}));
}

TEST_F(SharedLinksTest, ASlowPairHoldsBackItsOwnMessagesOnly) {
  cluster_.links = {{"m0", "m1", {1, 0.5}}};
  // The third waits for the first two on the uplink.
  EXPECT_EQ(arrivals({value(0, 2), value(0, 2), value(0, 4)}), Times({80.5, 160.5, 30.5}));
  EXPECT_EQ(arrivals({sum(0, 2), sum(0, 2), sum(0, 4)}), Times({80.5, 160.5, 30.5}));
}

TEST_F(SharedLinksTest, APortIsAsFastAsItsFastestLink) {
  cluster_.links = {{"m0", "m2", {16, 0.5}}};
  // The first uses the uplink for 5 s.
  EXPECT_EQ(arrivals({value(0, 2), value(0, 4)}), Times({10.5, 10.5}));
}

TEST_F(SharedLinksTest, OneMachinesProcessesUseTheirLocalLinkOnly) {
  EXPECT_EQ(arrivals({value(0, 1), value(1, 0), value(0, 2)}), Times({1.25, 2.25, 10.5}));
}

TEST_F(SharedLinksTest, AValuePassesASumThatIsUnderWay) {
  sent_s_ = {0, 4};
  EXPECT_EQ(arrivals({sum(0, 2), value(1, 3)}), Times({20.5, 14.5}));
  EXPECT_EQ(crossings_[0].start_s, 0);
  EXPECT_EQ(crossings_[0].end_s, 20);
}

TEST_F(SharedLinksTest, AValueThatComesToTheDownlinkPassesTheSumThere) {
  sent_s_ = {0, 4};
  EXPECT_EQ(arrivals({sum(0, 4), value(2, 5)}), Times({20.5, 14.5}));
  EXPECT_EQ(crossings_[0].end_s, 10);  // it has left its own uplink by then
}

TEST_F(SharedLinksTest, ASumHasWhatSeveralValuesLeave) {
  // From 0 to 4 s and from 24 to 30 s, after the values of 4 and 14 s.
  sent_s_ = {0, 4, 5};
  EXPECT_EQ(arrivals({sum(0, 2), value(0, 2), value(0, 2)}), Times({30.5, 14.5, 24.5}));
}

TEST_F(SharedLinksTest, ASumThatComesWhileAValuePassesBeginsBehindIt) {
  sent_s_ = {0, 4};
  EXPECT_EQ(arrivals({value(0, 2), sum(0, 2)}), Times({10.5, 20.5}));
  EXPECT_EQ(crossings_[1].start_s, 10);
}

TEST_F(SharedLinksTest, AValueThatComesAsASumEndsDoesNotHoldItUp) {
  sent_s_ = {0, 10};
  EXPECT_EQ(arrivals({sum(0, 2), value(0, 2)}), Times({10.5, 20.5}));
}

TEST_F(SharedLinksTest, SumsKeepTheirOrder) {
  sent_s_ = {0, 1, 5};
  EXPECT_EQ(arrivals({sum(0, 2), sum(0, 2), value(0, 2)}), Times({20.5, 30.5, 15.5}));
}

TEST_F(SharedLinksTest, WhatIsPastALinkIsNotHeldUpByWhatComesThere) {
  sent_s_ = {0, 10.25};
  EXPECT_EQ(arrivals({sum(0, 2), value(0, 4)}), Times({10.5, 20.75}));
}

TEST_F(SharedLinksTest, WhatAMachineOfAMediumSendsAndReceivesTakesTurns) {
  cluster_.machines[0].medium = "wifi";
  EXPECT_EQ(arrivals({value(0, 2), value(2, 0)}), Times({10.5, 20}));
  EXPECT_EQ(arrivals({sum(0, 2), sum(2, 0)}), Times({10.5, 20}));
  EXPECT_EQ(arrivals({value(2, 4), value(4, 2)}), Times({10.5, 10.5})) << "these have cables";
}

TEST_F(SharedLinksTest, MachinesOfOneMediumShareIt) {
  cluster_.machines[0].medium = cluster_.machines[1].medium = "wifi";
  // A message between two machines on the medium uses it once.
  EXPECT_EQ(arrivals({value(0, 2), value(2, 4)}), Times({10.5, 20.5}));
  EXPECT_EQ(arrivals({sum(0, 2), sum(2, 4)}), Times({10.5, 20.5}));
  cluster_.machines[1].medium = "another";
  EXPECT_EQ(arrivals({value(0, 2), value(4, 2)}), Times({10.5, 20.5})) << "in turn at its end";
  EXPECT_EQ(arrivals({value(0, 4), value(2, 5)}), Times({10.5, 20.5})) << "one cable at the end";
}

}  // namespace
}  // namespace motley

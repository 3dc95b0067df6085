#include "partitioner/cost/shared_links.h"

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

  SharedLinks links() {
    cost_ = *CostModel::make(problem_.model(), cluster_, problem_.profile(), 1, 2);
    return {*cost_, slots_};
  }

  static double arrival_s(SharedLinks& links, std::size_t from, std::size_t to, double bytes) {
    const SharedLinks::Passage passage = links.leave(from, to, bytes, 0);
    return links.reach(from, to, bytes, passage.last_byte_s, passage.first_byte_s);
  }

  Problem problem_;
  Cluster cluster_;
  std::optional<CostModel> cost_;
  const std::vector<int> slots_ = {0, 1, 2, 3, 4, 5};
};

TEST_F(SharedLinksTest, OneMessageTakesItsBytesAndTheLatency) {
  SharedLinks shared = links();
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 2, 80), 10.5);
}

TEST_F(SharedLinksTest, TwoSendersShareTheReceiversDownlink) {
  SharedLinks shared = links();
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 4, 80), 10.5);
  EXPECT_DOUBLE_EQ(arrival_s(shared, 2, 5, 80), 20.5);
}

TEST_F(SharedLinksTest, TwoReceiversShareTheSendersUplink) {
  SharedLinks shared = links();
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 2, 80), 10.5);
  EXPECT_DOUBLE_EQ(arrival_s(shared, 1, 4, 80), 20.5);
}

TEST_F(SharedLinksTest, BothDirectionsAreFree) {
  SharedLinks shared = links();
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 2, 80), 10.5);
  EXPECT_DOUBLE_EQ(arrival_s(shared, 2, 0, 80), 10.5);
}

TEST_F(SharedLinksTest, ASlowPairHoldsBackItsOwnMessagesOnly) {
  cluster_.links = {{"m0", "m1", {1, 0.5}}};
  SharedLinks shared = links();
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 2, 80), 80.5);
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 2, 80), 160.5);
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 4, 80), 30.5);  // behind two on the uplink
}

TEST_F(SharedLinksTest, APortIsAsFastAsItsFastestLink) {
  cluster_.links = {{"m0", "m2", {16, 0.5}}};
  SharedLinks shared = links();
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 2, 80), 10.5);  // takes the uplink for 5 s
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 4, 80), 10.5);
}

TEST_F(SharedLinksTest, OneMachinesProcessesUseTheirLocalLinkOnly) {
  SharedLinks shared = links();
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 1, 80), 1.25);
  EXPECT_DOUBLE_EQ(arrival_s(shared, 1, 0, 80), 2.25);
  EXPECT_DOUBLE_EQ(arrival_s(shared, 0, 2, 80), 10.5);
}

}  // namespace
}  // namespace motley

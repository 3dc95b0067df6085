#include "cluster/run_record/data_time_monitor.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::HasSubstr;

// The messages of rank 0 in steps of a second.
std::vector<std::string> messages_of(double first_s, double data_s, int steps) {
  DataTimeMonitor monitor({"stage 0 (box)"});
  std::vector<std::string> messages;
  if (const auto line = monitor.add(Rank{0}, first_s, 1)) messages.push_back(*line);
  for (int step = 1; step < steps; ++step) {
    if (const auto line = monitor.add(Rank{0}, data_s, 1)) messages.push_back(*line);
  }
  return messages;
}

TEST(DataTimeMonitor, TellsTheShareOfAStepOnce) {
  const auto messages = messages_of(0, 0.25, 50);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0], HasSubstr("stage 0 (box): the training waits for its data: reading "
                                     "samples takes 25 % of a step"));
}

TEST(DataTimeMonitor, IsSilentAboutShortReadingAndTheFirstStep) {
  EXPECT_TRUE(messages_of(0.9, 0.05, 50).empty());
  EXPECT_TRUE(messages_of(0.9, 0.5, 10).empty()) << "not yet a window";
}

}  // namespace
}  // namespace motley

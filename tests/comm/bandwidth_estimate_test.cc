#include "comm/tcp/bandwidth_estimate.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const SteadyClock::time_point kStart = SteadyClock::now();

TEST(BandwidthEstimate, KnowsNothingAtFirst) {
  BandwidthEstimate pace;
  EXPECT_FALSE(pace.bytes_per_s().has_value());
  pace.look(kStart, 1000, true);
  EXPECT_FALSE(pace.bytes_per_s().has_value());
  pace.look(kStart + seconds(1), 1000, true);  // no bytes moved
  EXPECT_FALSE(pace.bytes_per_s().has_value());
}

TEST(BandwidthEstimate, IsWhatPassesWhileThereIsAlwaysMore) {
  BandwidthEstimate pace;
  pace.look(kStart, 0, true);
  pace.look(kStart + milliseconds(500), 500'000, true);
  EXPECT_EQ(pace.bytes_per_s(), 1e6);
  pace.look(kStart + milliseconds(1500), 700'000, true);
  EXPECT_EQ(pace.bytes_per_s(), 2e5);
}

TEST(BandwidthEstimate, IsNotLessWhereThereIsNotAlwaysMore) {
  BandwidthEstimate pace;
  pace.look(kStart, 0, true);
  pace.look(kStart + seconds(1), 100'000'000, true);
  pace.look(kStart + seconds(2), 100'000'001, false);
  pace.look(kStart + seconds(3), 100'000'002, true);
  EXPECT_EQ(pace.bytes_per_s(), 1e8);
}

TEST(BandwidthEstimate, IsMoreWhereMoreHasPassed) {
  BandwidthEstimate pace;
  pace.look(kStart, 0, false);
  pace.look(kStart + seconds(1), 1000, false);  // below the initial assumption
  EXPECT_FALSE(pace.bytes_per_s().has_value());
  pace.look(kStart + seconds(2), 50'001'000, false);
  EXPECT_EQ(pace.bytes_per_s(), 5e7);
}

TEST(BandwidthEstimate, SaysWhatPassesInATimeWithinBounds) {
  BandwidthEstimate pace;
  pace.look(kStart, 0, true);
  pace.look(kStart + seconds(1), 1'000'000, true);
  EXPECT_EQ(pace.bytes_in(milliseconds(4), 10, 10'000), 4000U);
  EXPECT_EQ(pace.bytes_in(milliseconds(4), 5000, 10'000), 5000U);
  EXPECT_EQ(pace.bytes_in(seconds(4), 10, 10'000), 10'000U);
}

}  // namespace
}  // namespace motley

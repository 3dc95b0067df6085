#include "base/progress_counter.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(ProgressCounter, MovesOnlyWhenSomethingWasFinished) {
  ProgressCounter work;
  const std::uint64_t before = work.count();
  EXPECT_EQ(work.words(), "");
  EXPECT_EQ(work.count(), before) << "reporting is no work";
  work.add_one();
  EXPECT_GT(work.count(), before);
}

TEST(ProgressCounter, SaysHowFarItsTaskIs) {
  ProgressCounter work;
  {
    const ProgressCounter::Task task(work, "loading parameters", 20'100'000'000);
    work.add_bytes(3'200'000'000);
    EXPECT_EQ(work.words(), "loading parameters: 3.2 of 20.1 GB");
  }
  EXPECT_EQ(work.words(), "");
  const ProgressCounter::Task task(work, "saving", 0);
  work.add_one();
  EXPECT_EQ(work.words(), "saving");
  work.add_bytes(1'500'000);
  EXPECT_EQ(work.words(), "saving: 1.5 MB");
}

TEST(ProgressCounter, TellsItsTasksBytesAsNumbers) {
  ProgressCounter work;
  EXPECT_EQ(work.bytes().total, 0U);
  const ProgressCounter::Task task(work, "loading", 20);
  work.add_bytes(7);
  EXPECT_EQ(work.bytes().done, 7U);
  EXPECT_EQ(work.bytes().total, 20U);
}

TEST(ProgressCounter, SeesThatWhatIsBesideItsTaskMoves) {
  ProgressCounter work;
  ProgressCounter beside(work);
  const ProgressCounter::Task task(work, "receiving", 20);
  const std::uint64_t before = work.count();
  beside.add_bytes(9);
  EXPECT_GT(work.count(), before);
  EXPECT_EQ(work.bytes().done, 0U);
}

}  // namespace
}  // namespace motley

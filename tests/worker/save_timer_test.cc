#include "worker/train/save_timer.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(SaveTimer, IsDueSoLongAfterTheStartAndAfterEachSave) {
  double now_s = 1000;
  SaveTimer timer(90, [&now_s] { return now_s; });
  EXPECT_FALSE(timer.is_due());
  now_s = 1089;
  EXPECT_FALSE(timer.is_due());
  now_s = 1090;
  EXPECT_TRUE(timer.is_due());
  EXPECT_TRUE(timer.is_due()) << "asking changes nothing";
  now_s = 1200;
  timer.restart();
  EXPECT_FALSE(timer.is_due());
  now_s = 1289;
  EXPECT_FALSE(timer.is_due());
  now_s = 1290;
  EXPECT_TRUE(timer.is_due());
}

TEST(SaveTimer, OfNoTimeIsNeverDue) {
  double now_s = 0;
  const SaveTimer timer(0, [&now_s] { return now_s; });
  for (const double later_s : {0.0, 1.0, 1e12}) {
    now_s = later_s;
    EXPECT_FALSE(timer.is_due());
  }
}

}  // namespace
}  // namespace motley

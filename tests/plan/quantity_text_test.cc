#include "plan/quantity_text.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(QuantityText, ChoosesUnits) {
  EXPECT_EQ(bytes_text(512), "0.5 KiB");
  EXPECT_EQ(bytes_text(3 << 20), "3.0 MiB");
  EXPECT_EQ(bytes_text(1.5 * (1 << 30)), "1.50 GiB");
  EXPECT_EQ(seconds_text(0.0123), "12.30 ms");
  EXPECT_EQ(seconds_text(1.72), "1.720 s");
  EXPECT_EQ(count_text(1'240'000), "1.24 M");
  EXPECT_EQ(link_rate_text(93.06e6 / 8), "93.1 Mbit/s");
  EXPECT_EQ(link_rate_text(5.2e6 / 8), "5.20 Mbit/s");
  EXPECT_EQ(link_rate_text(55.13e9 / 8), "55.1 Gbit/s");
  EXPECT_EQ(per_second_text(3.782), "3.78");
  EXPECT_EQ(per_second_text(37.24), "37.2");
  EXPECT_EQ(per_second_text(859.4), "859");
  EXPECT_EQ(per_second_text(1'234'567), "1,234,567");
}

TEST(QuantityText, SaysByHowMuchAValueDiffers) {
  EXPECT_EQ(change_text(2, 2.36), "+18.0 %");
  EXPECT_EQ(change_text(2, 1), "-50.0 %");
  EXPECT_EQ(change_text(0, 1), "");
}

TEST(RoundedUp, HasThreeDigitsAndIsNotLess) {
  EXPECT_DOUBLE_EQ(rounded_up(0.048312), 0.0484);
  EXPECT_DOUBLE_EQ(rounded_up(3.1201), 3.13);
  EXPECT_DOUBLE_EQ(rounded_up(3.12), 3.12);
  EXPECT_DOUBLE_EQ(rounded_up(1234.5), 1240);
}

}  // namespace
}  // namespace motley

#include "base/text/text_table.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(TextTable, AlignsByWhatIsSeenAndEndsLinesAtTheirText) {
  EXPECT_EQ(aligned_table({{"a", "b", "c"}, {"0 → 1", "x"}, {"…", "", "long"}}, 1),
            " a      b  c\n"
            " 0 → 1  x\n"
            " …         long\n");
  EXPECT_EQ(aligned_table({}), "");
}

}  // namespace
}  // namespace motley

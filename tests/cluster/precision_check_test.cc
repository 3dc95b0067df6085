#include "cluster/examine/precision_check.h"

#include <gmock/gmock.h>

#include "base/json.h"

namespace motley {
namespace {

using testing::HasSubstr;

Json says(const char* numbers) {
  return {{"event", "precision"}, {"numbers", numbers}};
}

TEST(PrecisionCheck, IsSilentWhereAllHaveTheNumbers) {
  PrecisionCheck check("bf16", {"desktop (cuda:0)", "laptop (cpu)"}, true);
  EXPECT_EQ(check.add(1, says("bf16")).value(), std::nullopt);
  EXPECT_EQ(check.add(0, says("bf16")).value(), std::nullopt);
}

TEST(PrecisionCheck, NamesOnceWhoComputesInFp32) {
  PrecisionCheck check("fp16", {"desktop (cuda:0)", "laptop (cpu)", "box (cpu)"}, true);
  EXPECT_EQ(check.add(1, says("fp32")).value(), std::nullopt);
  EXPECT_EQ(check.add(0, says("fp16")).value(), std::nullopt);
  EXPECT_EQ(check.add(2, says("fp32")).value(),
            "laptop (cpu), box (cpu): no fp16 there, so they compute in fp32");
}

TEST(PrecisionCheck, RefusesWhatNobodyHas) {
  for (const char* wanted : {"bf16", "fp16"}) {
    PrecisionCheck check(wanted, {"laptop (cpu)"}, true);
    const auto refused = check.add(0, says("fp32"));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
    EXPECT_THAT(refused.error().what, HasSubstr(wanted));
    EXPECT_THAT(refused.error().cause, HasSubstr("laptop (cpu)"));
    EXPECT_THAT(refused.error().remedy, HasSubstr("fp32"));
  }
}

// A plan may leave out the devices that have the numbers.
TEST(PrecisionCheck, OnlySaysSoOfAPartOfTheDevices) {
  PrecisionCheck check("bf16", {"laptop (cpu)"}, false);
  EXPECT_EQ(check.add(0, says("fp32")).value(),
            "laptop (cpu): no bf16 there, so it computes in fp32");
}

TEST(PrecisionCheck, RefusesAWorkerThatSaysNothing) {
  PrecisionCheck check("bf16", {"laptop (cpu)"}, true);
  EXPECT_FALSE(check.add(0, {{"event", "precision"}}).ok());
}

}  // namespace
}  // namespace motley

#include "cluster/run_record/arithmetic_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kOld = "LibTorch 1.13.1, BLAS libopenblas.so for Nehalem";
constexpr const char* kNew = "LibTorch 1.13.1, BLAS libopenblas.so for SkylakeX";

Plan plan_of(const std::vector<std::pair<std::string, std::string>>& ranks) {
  Plan plan;
  for (const auto& [machine, device] : ranks) {
    plan.ranks.push_back({.machine = machine, .device = device});
  }
  return plan;
}

TEST(ArithmeticCheck, IsSilentWhereAllAreAlike) {
  const Plan plan = plan_of({{"box", "cpu"}, {"desk", "cpu"}});
  ArithmeticCheck check(plan);
  EXPECT_FALSE(check.add(Rank{1}, kNew));
  EXPECT_FALSE(check.add(Rank{0}, kNew));
}

TEST(ArithmeticCheck, NamesTheMachinesOnceAllHaveReported) {
  const Plan plan = plan_of({{"box", "cpu"}, {"desk", "cpu"}, {"lab", "cpu"}});
  ArithmeticCheck check(plan);
  EXPECT_FALSE(check.add(Rank{1}, kNew));
  EXPECT_FALSE(check.add(Rank{0}, kOld));
  const auto line = check.add(Rank{2}, kNew);
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, AllOf(HasSubstr(std::string("box with ") + kOld),
                           HasSubstr(std::string("desk, lab with ") + kNew),
                           HasSubstr("OPENBLAS_CORETYPE")));
  EXPECT_FALSE(check.add(Rank{2}, kOld));
}

TEST(ArithmeticCheck, ComparesProcessorsOnly) {
  const Plan plan = plan_of({{"box", "cpu"}, {"card", "cuda:0"}, {"desk", "cpu"}});
  ArithmeticCheck check(plan);
  EXPECT_FALSE(check.add(Rank{1}, kOld));
  EXPECT_FALSE(check.add(Rank{0}, kNew));
  EXPECT_FALSE(check.add(Rank{2}, kNew));
}

TEST(ArithmeticCheck, ShowsFourKindsAtMost) {
  std::vector<std::pair<std::string, std::string>> ranks;
  for (int r = 0; r < 6; ++r) ranks.emplace_back("m" + std::to_string(r), "cpu");
  const Plan plan = plan_of(ranks);
  ArithmeticCheck check(plan);
  std::optional<std::string> line;
  for (int r = 0; r < 6; ++r) line = check.add(Rank{r}, "BLAS " + std::to_string(r));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, AllOf(HasSubstr("m3 with BLAS 3; …"), Not(HasSubstr("BLAS 4"))));
}

}  // namespace
}  // namespace motley

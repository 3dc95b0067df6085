// The findings of `motley doctor` on the devices of one machine.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/diagnose/diagnosis.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class DeviceDiagnosis : public testing::Test {
 protected:
  DeviceDiagnosis() {
    machine_.name = "desk";
    machine_.devices = {"cpu"};
    found_.devices = {{.name = "cpu"}};
    found_.missing = {{"cuda", {"this LibTorch is for processors", "another LibTorch"}, false}};
  }

  void add_card() {
    found_.missing.clear();
    found_.devices.push_back({.name = "cuda:0",
                              .model = "NVIDIA GeForce RTX 3060",
                              .capability = "8.6",
                              .driver = "for CUDA 12.4",
                              .memory_bytes = std::int64_t{12} << 30,
                              .free_bytes = std::int64_t{11} << 30,
                              .types = {"fp32", "bf16"}});
  }

  [[nodiscard]] std::vector<Finding> findings() const { return diagnose_devices(machine_, found_); }

  // REQUIRES: there is exactly one.
  [[nodiscard]] Finding only() const {
    const auto all = findings();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? Finding{} : all.front();
  }

  Machine machine_;
  DevicesFound found_;
};

TEST_F(DeviceDiagnosis, SaysNothingOfKindsThatNobodyWants) {
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(DeviceDiagnosis, SaysWhatACardIs) {
  add_card();
  machine_.devices = {"cuda:0"};
  EXPECT_EQ(only().level, FindingLevel::kOk);
  EXPECT_EQ(only().what,
            "cuda:0: NVIDIA GeForce RTX 3060, compute capability 8.6, driver for CUDA 12.4, "
            "computes in fp32, bf16, 11.00 GiB of 12.00 GiB free");
}

TEST_F(DeviceDiagnosis, SaysWhyAKindIsMissingThatIsListed) {
  machine_.devices = {"cpu", "cuda:0"};
  EXPECT_EQ(only().level, FindingLevel::kProblem);
  EXPECT_EQ(only().code, ErrorCode::kConfig);
  EXPECT_THAT(only().what, AllOf(HasSubstr("'cuda:0'"), HasSubstr("is for processors")));
  EXPECT_EQ(only().remedy, "another LibTorch");
}

TEST_F(DeviceDiagnosis, WarnsOfACardThatLibTorchCannotUse) {
  found_.missing.front().is_shown = true;
  EXPECT_EQ(only().level, FindingLevel::kWarning);
  EXPECT_EQ(only().remedy, "another LibTorch");
  machine_.devices = {"cuda:0"};
  EXPECT_EQ(only().level, FindingLevel::kProblem);
}

TEST_F(DeviceDiagnosis, NamesThoseThereAreForAnIndexThatIsNot) {
  add_card();
  machine_.devices = {"cuda:0", "cuda:3"};
  const auto all = findings();
  const auto problem = std::ranges::find(all, FindingLevel::kProblem, &Finding::level);
  ASSERT_NE(problem, all.end());
  EXPECT_THAT(problem->what, HasSubstr("cuda:3"));
  EXPECT_THAT(problem->remedy, HasSubstr("cpu, cuda:0"));
}

TEST_F(DeviceDiagnosis, RefusesOneThatNothingRunsOn) {
  add_card();
  found_.devices.back().fault = {"its compute capability is 3.5", "an older LibTorch"};
  machine_.devices = {"cuda:0"};
  EXPECT_EQ(only().level, FindingLevel::kProblem);
  EXPECT_THAT(only().what, HasSubstr("3.5"));
  EXPECT_EQ(only().remedy, "an older LibTorch");
}

TEST_F(DeviceDiagnosis, NotesOnceAKindThatMotleyHasNotRunOn) {
  found_.devices.push_back({.name = "mps", .types = {"fp32"}});
  machine_.devices = {"mps"};
  const auto all = findings();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.back().level, FindingLevel::kNote);
  EXPECT_THAT(all.back().what, HasSubstr("has not run on such a device yet"));
  EXPECT_THAT(all.back().remedy, HasSubstr("scripts/gpu-check"));
}

TEST_F(DeviceDiagnosis, NotesACardThatTheFileLeavesOut) {
  add_card();
  EXPECT_EQ(only().level, FindingLevel::kNote);
  EXPECT_THAT(only().what, HasSubstr("unused: cuda:0"));
  EXPECT_THAT(only().remedy, HasSubstr("auto"));
}

}  // namespace
}  // namespace motley

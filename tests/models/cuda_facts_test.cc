// A machine's data about its CUDA cards and the conclusions from them; no test here needs a card.
#include "models/device/kinds/cuda_facts.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/device/kinds/visible_gpus.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kNoLibrary =
    "libtorch_cuda.so: cannot open shared object file: No such file or directory";

TEST(WhyNoCard, ALibTorchForProcessorsIsTheCauseOnlyWhereACardIsShown) {
  const DeviceProblem without = no_card_problem({.library_problem = kNoLibrary});
  EXPECT_THAT(without.cause, AllOf(HasSubstr("no NVIDIA GPU"), Not(HasSubstr("for processors"))));
  EXPECT_THAT(without.remedy, AllOf(HasSubstr("nvidia-smi"), Not(HasSubstr("LibTorch"))));
  EXPECT_FALSE(without.is_shown);

  const DeviceProblem with = no_card_problem({.library_problem = kNoLibrary, .visible_gpus = 2});
  EXPECT_THAT(with.cause, AllOf(HasSubstr("2 NVIDIA GPUs"), HasSubstr("for processors")));
  EXPECT_THAT(with.remedy, AllOf(HasSubstr("libtorch-cuda-dev"), HasSubstr("docs/portability.md")));
  EXPECT_TRUE(with.is_shown);
}

TEST(WhyNoCard, AnAmdGpuIsNamedWhereThereIsNoOther) {
  const DeviceProblem amd = no_card_problem({.library_problem = kNoLibrary, .has_amd_gpu = true});
  EXPECT_THAT(amd.cause, AllOf(HasSubstr("an AMD GPU"), HasSubstr("libtorch_hip")));
  EXPECT_THAT(amd.remedy, HasSubstr("docs/devices.md"));
  EXPECT_TRUE(amd.is_shown);
  const DeviceProblem both =
      no_card_problem({.library_problem = kNoLibrary, .visible_gpus = 1, .has_amd_gpu = true});
  EXPECT_THAT(both.cause, HasSubstr("an NVIDIA GPU"));
}

TEST(WhyNoCard, ALibraryThatAnotherOneNeedsIsNamed) {
  const DeviceProblem problem = no_card_problem(
      {.library_problem =
           "libcudnn.so.9: cannot open shared object file: No such file or directory",
       .visible_gpus = 1});
  EXPECT_THAT(problem.cause, AllOf(HasSubstr("libcudnn.so.9"), Not(HasSubstr("for processors"))));
  EXPECT_THAT(problem.remedy, HasSubstr("install the CUDA libraries"));
}

TEST(WhyNoCard, ADriverThatIsNotThereIsToBeInstalled) {
  const DeviceProblem problem = no_card_problem({.runtime = 12040, .visible_gpus = 1});
  EXPECT_THAT(problem.cause, AllOf(HasSubstr("for CUDA 12.4"), HasSubstr("no NVIDIA driver")));
  EXPECT_THAT(problem.remedy, HasSubstr("nvidia-driver"));
  EXPECT_TRUE(problem.is_shown);
  EXPECT_FALSE(no_card_problem({.runtime = 12040}).is_shown);
}

TEST(WhyNoCard, ADriverOfAnEarlierMajorVersionIsTooOld) {
  const DeviceProblem old = no_card_problem({.runtime = 12040, .driver = 11080, .visible_gpus = 1});
  EXPECT_THAT(old.cause, AllOf(HasSubstr("12.4"), HasSubstr("at most CUDA 11.8")));
  EXPECT_THAT(old.remedy, AllOf(HasSubstr("for CUDA 12 or later"), HasSubstr("for CUDA 11")));
}

TEST(WhyNoCard, ADriverOfTheSameMajorVersionServes) {
  for (const int driver : {12000, 12040, 13000}) {
    const DeviceProblem problem =
        no_card_problem({.runtime = 12040, .driver = driver, .visible_gpus = 1});
    EXPECT_THAT(problem.cause, AllOf(HasSubstr("no GPU"), Not(HasSubstr("at most"))));
  }
  // Before CUDA 11 the minor version mattered too.
  EXPECT_THAT(no_card_problem({.runtime = 10020, .driver = 10010}).cause,
              HasSubstr("at most CUDA 10.1"));
}

TEST(WhyNoCard, AVariableThatHidesTheCardsIsNamed) {
  const DeviceProblem problem =
      no_card_problem({.runtime = 12040, .driver = 12040, .visible_gpus = 1, .are_hidden = true});
  EXPECT_THAT(problem.cause, HasSubstr("CUDA_VISIBLE_DEVICES"));
}

// In LibTorch 2's format.
constexpr const char* kFlags =
    "  - NVCC architecture flags: -gencode;arch=compute_50,code=sm_50;-gencode;arch=compute_80,"
    "code=sm_80;-gencode;arch=compute_86,code=sm_86;-gencode;arch=compute_90a,code=sm_90a;"
    "-gencode;arch=compute_90,code=compute_90\n  - CuDNN 90.1";

TEST(CudaKernels, AreReadFromWhatLibTorchTells) {
  const CudaKernels kernels = cuda_kernels(kFlags);
  EXPECT_THAT(kernels.compiled, ElementsAre(ComputeCapability{5, 0}, ComputeCapability{8, 0},
                                            ComputeCapability{8, 6}));
  EXPECT_THAT(kernels.exactly_for, ElementsAre(ComputeCapability{9, 0}));
  EXPECT_THAT(kernels.translated, ElementsAre(ComputeCapability{9, 0}));
  EXPECT_THAT(cuda_kernels("code=sm_120").compiled, ElementsAre(ComputeCapability{12, 0}));
}

TEST(CudaKernels, AreNoneInAnyOtherText) {
  for (const char* text : {"", "code=", "code=sm_", "code=sm_x", "code=sm_9999999999999", "code"}) {
    const CudaKernels kernels = cuda_kernels(text);
    EXPECT_THAT(kernels.compiled, IsEmpty()) << text;
    EXPECT_THAT(kernels.translated, IsEmpty()) << text;
  }
}

TEST(TroubleWithACard, IsThatNoKernelRunsOnIt) {
  const CudaKernels kernels = cuda_kernels(kFlags);
  for (const ComputeCapability fit : {ComputeCapability{5, 2}, {8, 0}, {8, 9}, {9, 0}, {12, 0}}) {
    EXPECT_FALSE(card_problem(fit, kernels)) << to_text(fit);
  }
  for (const ComputeCapability unfit : {ComputeCapability{3, 5}, {6, 1}, {7, 5}}) {
    EXPECT_TRUE(card_problem(unfit, kernels)) << to_text(unfit);
  }
  const auto old = card_problem({3, 5}, kernels);
  EXPECT_THAT(old->cause, AllOf(HasSubstr("3.5"), HasSubstr("5.0 to 9.0")));
  EXPECT_THAT(old->remedy, HasSubstr("older LibTorch"));
}

TEST(TroubleWithACard, IsThatLibTorchIsOlderWhereItTranslatesNothing) {
  const auto problem = card_problem({12, 0}, cuda_kernels("code=sm_80;code=sm_90"));
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->remedy, HasSubstr("newer LibTorch"));
}

TEST(TroubleWithACard, IsNotKnownWhereLibTorchDoesNotTell) {
  EXPECT_FALSE(card_problem({3, 5}, {}));
}

TEST(NvidiaCardsShown, CountsDisplaysAndOtherCardsOfNvidia) {
  const std::filesystem::path top =
      std::filesystem::path(testing::TempDir()) / "visible_nvidia_gpus";
  std::filesystem::remove_all(top);
  const auto add = [&](const char* name, const char* vendor, const char* kind) {
    std::filesystem::create_directories(top / name);
    std::ofstream(top / name / "vendor") << vendor << '\n';
    std::ofstream(top / name / "class") << kind << '\n';
  };
  EXPECT_EQ(visible_nvidia_gpus(top), 0);
  add("0000:01:00.0", "0x10de", "0x030000");
  add("0000:01:00.1", "0x10de", "0x040300");  // the card's audio function
  add("0000:02:00.0", "0x10de", "0x030200");  // without a display output
  add("0000:03:00.0", "0x1002", "0x030000");
  std::filesystem::create_directories(top / "0000:04:00.0");
  EXPECT_EQ(visible_nvidia_gpus(top), 2);
  std::filesystem::remove_all(top);
}

}  // namespace
}  // namespace motley

// Compute devices, opened by their names in cluster files.
#include "models/device/compute_device.h"

#include <cstdlib>
#include <string>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "tests/models/far_fixture.h"

namespace motley {
namespace {

using testing::Contains;
using testing::HasSubstr;

Error trouble_with(const std::string& name) {
  const auto device = ComputeDevice::open(name);
  if (!device.ok()) return device.error();
  ADD_FAILURE() << name << " was opened";
  return {};
}

TEST(ComputeDeviceOnHost, IsTheProcessor) {
  const auto device = ComputeDevice::open("cpu");
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE(device->is_host());
  EXPECT_EQ(device->torch(), c10::Device(c10::kCPU));
  device->make_current();
}

TEST_F(FarDevice, IsOpenedByName) {
  EXPECT_FALSE(device_.is_host());
  EXPECT_EQ(device_.torch().str(), "privateuseone:0");
  EXPECT_EQ(at::ones({2}, at::device(device_.torch())).device(), device_.torch());
}

TEST_F(FarDevice, TheSecondIsTheCurrentOneOnceOpened) {
  const ComputeDevice second = open_far_device("privateuseone:1");
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  EXPECT_EQ(guard.getDevice(), second.torch());
  const std::uint64_t before = motley_far_bytes(1);
  const auto there = at::empty({1024}, at::device(c10::DeviceType::PrivateUse1));
  EXPECT_EQ(there.device(), second.torch());
  EXPECT_EQ(motley_far_bytes(1), before + 4096);
  device_.make_current();
  EXPECT_EQ(guard.getDevice(), device_.torch());
}

TEST_F(FarDevice, ComputesReproduciblyOnceOpened) {
  const at::Context& context = at::globalContext();
  EXPECT_TRUE(context.deterministicAlgorithms());
  EXPECT_FALSE(context.deterministicAlgorithmsWarnOnly());
  EXPECT_TRUE(context.deterministicCuDNN());
  EXPECT_FALSE(context.benchmarkCuDNN());
  EXPECT_FALSE(context.allowTF32CuBLAS());
  EXPECT_FALSE(context.allowTF32CuDNN());
  EXPECT_THROW(at::Context::alertNotDeterministic("some operation"), c10::Error);
}

TEST_F(FarDevice, LeavesAPersonsOwnSettingOfCublas) {
  constexpr const char* kVariable = "CUBLAS_WORKSPACE_CONFIG";
  EXPECT_STREQ(std::getenv(kVariable), ":4096:8");
  ::setenv(kVariable, ":16:8", /*overwrite=*/1);
  static_cast<void>(open_far_device());
  EXPECT_STREQ(std::getenv(kVariable), ":16:8");
  ::unsetenv(kVariable);
}

TEST_F(FarDevice, DevicesHereNamesAll) {
  const auto names = local_devices();
  EXPECT_EQ(names.front(), "cpu");
  EXPECT_THAT(names, Contains("privateuseone:0"));
  EXPECT_THAT(names, Contains("privateuseone:1"));
}

TEST_F(FarDevice, ANumberThatThereIsNotNamesThoseThereAre) {
  const Error error = trouble_with("privateuseone:7");
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.what, HasSubstr("privateuseone:7"));
  EXPECT_THAT(error.cause, HasSubstr("cpu, privateuseone:0, privateuseone:1"));
  EXPECT_THAT(error.remedy, HasSubstr("cluster file"));
}

TEST_F(FarDevice, IsNotOpenedWhileItsMemoryIsFull) {
  motley_far_limit_memory(1);
  const Error error = trouble_with("privateuseone:0");
  motley_far_limit_memory(std::uint64_t{1} << 40);
  EXPECT_EQ(error.code, ErrorCode::kInfeasible);
  EXPECT_THAT(error.what, HasSubstr("privateuseone:0 is out of memory"));
  EXPECT_THAT(error.remedy, HasSubstr("end other programs on it"));
}

TEST_F(FarDevice, IsNotOpenedWhereItDoesNotComputeInTime) {
  motley_far_hang(1);
  const auto device = ComputeDevice::open("privateuseone:0", 0.05);
  motley_far_hang(0);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::kInternal);
  EXPECT_THAT(device.error().what, HasSubstr("waiting for device privateuseone:0 to finish its "
                                             "first operation: timed out after 0.05 s"));
  EXPECT_THAT(device.error().cause, HasSubstr("does not end"));
}

TEST_F(FarDevice, IsWhatItsLibraryCallsIt) {
  EXPECT_EQ(device_model("privateuseone:1"), "far device");
  EXPECT_EQ(device_model("cpu"), "");
}

TEST(ComputeDeviceNames, OneThatMeansNothingIsRefused) {
  const Error error = trouble_with("gpu:0");
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.what, HasSubstr("gpu:0"));
  EXPECT_THAT(error.cause, HasSubstr("cuda:0"));
  EXPECT_FALSE(error.remedy.empty());
}

TEST(ComputeDeviceNames, ALibraryThatIsNotNamedOrNotThereIsTheCause) {
  ::unsetenv("MOTLEY_DEVICE_LIBRARY");
  const Error unnamed = trouble_with("privateuseone:0");
  EXPECT_EQ(unnamed.code, ErrorCode::kConfig);
  EXPECT_THAT(unnamed.cause, HasSubstr("MOTLEY_DEVICE_LIBRARY is not set"));
  EXPECT_THAT(unnamed.remedy, HasSubstr("MOTLEY_DEVICE_LIBRARY"));

  ::setenv("MOTLEY_DEVICE_LIBRARY", "", /*overwrite=*/1);
  EXPECT_THAT(trouble_with("privateuseone:0").cause, HasSubstr("MOTLEY_DEVICE_LIBRARY is empty"));

  ::setenv("MOTLEY_DEVICE_LIBRARY", "/no/such/library.so", /*overwrite=*/1);
  const Error absent = trouble_with("privateuseone:0");
  EXPECT_EQ(absent.code, ErrorCode::kConfig);
  EXPECT_THAT(absent.cause, HasSubstr("/no/such/library.so"));
}

TEST(ComputeDeviceNames, AKindThatIsNotHereSaysWhatWouldBringIt) {
  for (const char* name : {"cuda:99", "mps"}) {
    const Error error = trouble_with(name);
    EXPECT_EQ(error.code, ErrorCode::kConfig) << name;
    EXPECT_THAT(error.what, HasSubstr(name));
    EXPECT_FALSE(error.cause.empty()) << name;
    EXPECT_FALSE(error.remedy.empty()) << name;
  }
}

}  // namespace
}  // namespace motley

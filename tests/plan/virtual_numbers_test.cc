#include "plan/cluster/virtual_numbers.h"

#include <string>

#include <gtest/gtest.h>

#include "plan/cluster/device_models.h"

namespace motley {
namespace {

Machine machine_of(const std::string& device_model) {
  Machine machine;
  machine.name = "m";
  machine.devices = {"virtual"};
  machine.device_model = device_model;
  return machine;
}

VirtualNumbers in_precision(const std::string& device_model, const std::string& precision) {
  return virtual_numbers(machine_of(device_model), precision);
}

TEST(VirtualNumbers, HaveTheRateOfThePrecision) {
  EXPECT_EQ(in_precision("rtx-3060", "fp32"), (VirtualNumbers{{.gflops = 4200}, "fp32", false}));
  for (const char* precision : {"bf16", "fp16"}) {
    EXPECT_EQ(in_precision("rtx-3060", precision),
              (VirtualNumbers{{.gflops = 10'900}, precision, true}));
  }
}

TEST(VirtualNumbers, StayInFp32WithoutUnitsForThePrecision) {
  const VirtualNumbers fp32{{.gflops = 5700}, "fp32", false};
  EXPECT_EQ(in_precision("titan-x-pascal", "bf16"), fp32);
  EXPECT_EQ(in_precision("titan-x-pascal", "fp16"), fp32);
  EXPECT_EQ(in_precision("v100", "bf16"), (VirtualNumbers{{.gflops = 9000}, "fp32", false}));
  EXPECT_EQ(in_precision("v100", "fp16"), (VirtualNumbers{{.gflops = 40'300}, "fp16", true}));
}

// Their own kernels round the factors of products alone.
TEST(VirtualNumbers, OfProcessorsKeepIntermediateValuesInFp32) {
  const VirtualNumbers numbers = in_precision("ryzen-9-9950x", "bf16");
  EXPECT_EQ(numbers.compute_dtype, "bf16");
  EXPECT_FALSE(numbers.rounds_intermediates);
  EXPECT_EQ(in_precision("ryzen-9-9950x", "fp16").compute_dtype, "fp32");
}

TEST(VirtualNumbers, LeaveASpeedOfTheClusterFileAsItIs) {
  Machine machine = machine_of("");
  machine.virtual_speed = VirtualSpeed{.tokens_per_s = 7};
  EXPECT_EQ(virtual_numbers(machine, "bf16"), (VirtualNumbers{{.tokens_per_s = 7}, "bf16", true}));
  machine.device_model = "rtx-3060";
  machine.virtual_speed = VirtualSpeed{.gflops = 4200};
  EXPECT_EQ(virtual_numbers(machine, "bf16").speed, (VirtualSpeed{.gflops = 4200}));
  machine.device_model = "titan-x-pascal";
  EXPECT_EQ(virtual_numbers(machine, "bf16").compute_dtype, "fp32");
}

TEST(VirtualNumbers, ExistForEveryModelAndPrecision) {
  for (const DeviceModel& model : device_models()) {
    for (const char* precision : {"fp32", "bf16", "fp16"}) {
      const VirtualNumbers numbers = in_precision(std::string(model.name), precision);
      EXPECT_GT(numbers.speed.gflops, 0) << model.name;
      EXPECT_EQ(numbers.compute_dtype == precision, computes_in(model, precision)) << model.name;
      EXPECT_EQ(product_bytes(numbers), numbers.compute_dtype == "fp32" ? 4 : 2) << model.name;
      EXPECT_TRUE(product_bytes(numbers) == 2 || !numbers.rounds_intermediates) << model.name;
    }
  }
}

}  // namespace
}  // namespace motley

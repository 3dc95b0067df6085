// The kinds of devices: their names, what they can do, what users are told.
#include "plan/device_kinds.h"

#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::HasSubstr;

TEST(DeviceKinds, HaveDifferentNamesAndSpellings) {
  std::set<std::string_view> names;
  std::set<std::string_view> spellings;
  for (const DeviceKind& kind : device_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_EQ(kind.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), std::string_view::npos)
        << kind.name;
    for (const std::string_view spelling : kind.spellings) {
      if (spelling.empty()) continue;
      EXPECT_TRUE(spellings.insert(spelling).second) << spelling;
    }
  }
  EXPECT_FALSE(names.contains(kAutomaticDevice));
}

// What other code relies on.
TEST(DeviceKinds, AreConsistent) {
  for (const DeviceKind& kind : device_kinds()) {
    const DeviceCapabilities& capabilities = kind.capabilities;
    EXPECT_EQ(capabilities.computes, !kind.torch_type.empty()) << kind.name;
    EXPECT_TRUE(capabilities.computes || !capabilities.keeps_state) << kind.name;
    EXPECT_TRUE(capabilities.computes || !kind.label.empty()) << kind.name;
    EXPECT_EQ(is_accelerator(capabilities), !kind.remedy.empty()) << kind.name;
    for (const DeviceKind& other : device_kinds()) {
      if (kind.torch_type.empty() || kind.torch_type != other.torch_type) continue;
      EXPECT_EQ(kind.library, other.library) << kind.name << ", " << other.name;
      EXPECT_EQ(kind.product_dtypes, other.product_dtypes) << kind.name << ", " << other.name;
      EXPECT_EQ(kind.has_fp64, other.has_fp64) << kind.name << ", " << other.name;
      EXPECT_EQ(kind.has_unified_memory, other.has_unified_memory)
          << kind.name << ", " << other.name;
    }
  }
}

TEST(DeviceKinds, AreFoundByTheNamesOfTheirDevices) {
  for (const DeviceKind& kind : device_kinds()) {
    EXPECT_EQ(find_device_kind(kind.name), &kind);
    for (const int index : {0, 7, 999}) {
      const std::string name = device_name(kind, index);
      EXPECT_EQ(find_device_kind(name), &kind) << name;
      EXPECT_TRUE(check_device(name).ok()) << name;
    }
  }
  for (const char* other : {"", "auto", "gpu", "cpux", "cud", ":0"}) {
    EXPECT_EQ(find_device_kind(other), nullptr) << other;
  }
}

TEST(DeviceKinds, AreNumberedWhereAMachineMayHaveSeveral) {
  EXPECT_EQ(device_name(*find_device_kind("cpu"), 0), "cpu");
  EXPECT_EQ(device_name(*find_device_kind("cuda"), 3), "cuda:3");
  EXPECT_EQ(device_name(*find_device_kind("virtual"), 1), "virtual:1");
}

TEST(DeviceKinds, AreUntriedWhereMotleyHasNotRun) {
  EXPECT_TRUE(is_untried_device("mps"));
  for (const char* device : {"cpu", "cuda:0", "privateuseone:1", "virtual", "tpu:0"}) {
    EXPECT_FALSE(is_untried_device(device)) << device;
  }
}

TEST(DeviceCapabilities, AreThoseOfTheKind) {
  const DeviceCapabilities processor = capabilities_of("cpu");
  EXPECT_TRUE(processor.computes && processor.keeps_state && processor.is_measured);
  EXPECT_FALSE(has_own_memory("cpu") || leaves_processor_free("cpu"));
  EXPECT_FALSE(is_accelerator(processor));
  for (const char* accelerator : {"cuda:0", "mps", "privateuseone:3"}) {
    EXPECT_EQ(capabilities_of(accelerator), DeviceCapabilities{}) << accelerator;
    EXPECT_TRUE(is_accelerator(capabilities_of(accelerator))) << accelerator;
  }
  for (const char* simulated : {"virtual", "virtual:12"}) {
    const DeviceCapabilities waits = capabilities_of(simulated);
    EXPECT_FALSE(waits.computes || waits.keeps_state || waits.is_measured) << simulated;
    EXPECT_FALSE(has_own_memory(simulated)) << simulated;
    EXPECT_TRUE(leaves_processor_free(simulated)) << simulated;
    EXPECT_FALSE(is_accelerator(waits)) << simulated;
  }
}

// "auto" stands for accelerators before the machine is asked.
TEST(DeviceCapabilities, OfAnUnknownDeviceAreThoseOfAnAccelerator) {
  for (const char* device : {"auto", "tpu:0", ""}) {
    EXPECT_EQ(capabilities_of(device), DeviceCapabilities{}) << device;
    EXPECT_EQ(label_of(device), "") << device;
  }
}

TEST(DeviceCapabilities, TogetherAreThoseThatBothHave) {
  const DeviceCapabilities processor = capabilities_of("cpu");
  const DeviceCapabilities simulated = capabilities_of("virtual");
  EXPECT_EQ(DeviceCapabilities{} & processor, processor);
  EXPECT_EQ(DeviceCapabilities{} & simulated, simulated);
  DeviceCapabilities both = simulated;
  both.leaves_processor_free = false;
  EXPECT_EQ(processor & simulated, both);
}

TEST(DeviceLabel, IsShownWithWhatWasNotComputed) {
  EXPECT_EQ(label_of("virtual:1"), "virtual");
  for (const char* device : {"cpu", "cuda:0", "mps", "privateuseone:0"}) {
    EXPECT_EQ(label_of(device), "") << device;
  }
}

TEST(CheckDevice, KnowsTheKindsOfDevices) {
  for (const char* device :
       {"cpu", "cuda:0", "cuda:15", "mps", "privateuseone:1", "virtual", "virtual:3"}) {
    EXPECT_TRUE(check_device(device).ok()) << device;
  }
}

TEST(CheckDevice, RefusesOtherNamesWithThoseThereAre) {
  for (const char* device : {"", "gpu", "gpu:0", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:1000",
                             "cuda:00", "privateuseone:01", "cuda0", "cudax:0", "auto", "cpu:0",
                             "mps:0", "CUDA:0", "privateuseone"}) {
    const auto checked = check_device(device);
    ASSERT_FALSE(checked.ok()) << device;
    EXPECT_EQ(checked.error().code, ErrorCode::kConfig);
    EXPECT_THAT(checked.error().what, HasSubstr(std::string("'") + device + "'"));
    EXPECT_EQ(checked.error().cause,
              R"("cpu", "mps", "cuda:0" to "cuda:999" compute, "auto" selects all devices, )"
              R"("virtual" simulates one)");
    EXPECT_THAT(checked.error().remedy, HasSubstr("cluster file"));
  }
}

TEST(CheckDevice, NamesTheDeviceThatIsNearWhatWasWritten) {
  for (const auto& [written, meant] : {std::pair("cuda", "cuda:0"),
                                       {"gpu", "cuda:0"},
                                       {"nvidia:1", "cuda:0"},
                                       {"cudart", "cuda:0"},
                                       {"Metal", "mps"},
                                       {"cuda:-1", "cuda:0"},
                                       {"CUDA:1", "cuda:1"},
                                       {"Auto", "auto"},
                                       {"cpu:0", "cpu"},
                                       {"mps:1", "mps"}}) {
    EXPECT_THAT(check_device(written).error().remedy,
                HasSubstr(std::string("write \"") + meant + "\" "));
  }
  for (const char* device : {"tpu:0", "privateuseone", "virtual:x", "", "mpsx"}) {
    EXPECT_THAT(check_device(device).error().remedy, HasSubstr("write one of these")) << device;
  }
}

}  // namespace
}  // namespace motley

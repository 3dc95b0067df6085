// The far device detects each error that a real device may hide.
#include <cmath>
#include <memory>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/device/device_copies.h"
#include "models/device/device_event.h"
#include "tests/models/far_fixture.h"

namespace motley {
namespace {

using testing::HasSubstr;

class FarMutations : public FarDevice {
 protected:
  [[nodiscard]] at::Tensor zeros_there(std::int64_t count) const {
    return at::zeros({count}, at::device(device_.torch()));
  }

  [[nodiscard]] c10::Stream computing() const { return guard_.getStream(device_.torch()); }

  const c10::impl::VirtualGuardImpl guard_{c10::DeviceType::PrivateUse1};
  const c10::Stream other_ = guard_.getStreamFromGlobalPool(device_.torch());
};

using FarMutationsDeathTest = FarMutations;

TEST_F(FarMutationsDeathTest, TheHostReadsMemoryOfTheDevice) {
  const at::Tensor there = zeros_there(4);
  EXPECT_DEATH(std::printf("%f", double{*there.data_ptr<float>()}), "");
}

TEST_F(FarMutationsDeathTest, TheHostWritesMemoryOfTheDevice) {
  const at::Tensor there = zeros_there(4);
  EXPECT_DEATH(there.data_ptr<float>()[1] = 1, "");
}

TEST_F(FarMutations, NewAndFreedMemoryIsNoNumber) {
  const auto options = at::device(device_.torch());
  for (int i = 0; i < 2; ++i) {
    const at::Tensor there = at::empty({1000}, options);
    EXPECT_TRUE(there.isnan().all().item<bool>());
    there.fill_(1);
  }
}

TEST_F(FarMutations, ADownloadThatNobodyWaitedForHoldsNoNumbers) {
  const at::Tensor there = zeros_there(4);
  at::Tensor host = at::zeros({4});
  host.copy_(there, /*non_blocking=*/true);
  EXPECT_TRUE(at::isnan(host).all().item<bool>());
  DeviceEvent(computing()).wait(1);
  EXPECT_TRUE(same_bits(host, at::zeros({4})));
}

TEST_F(FarMutationsDeathTest, AnUploadIsComputedOnTooEarly) {
  const auto mistake = [&] {
    at::Tensor there = zeros_there(4);
    DeviceEvent(computing()).block_stream(other_);
    {
      const c10::StreamGuard on(other_);
      there.copy_(values({4}), /*non_blocking=*/true);
    }
    there.add_(1);
  };
  EXPECT_DEATH(mistake(),
               "race: aten::add_? on stream 0 of privateuseone:0 .* the copy to the device");
}

TEST_F(FarMutationsDeathTest, AnUploadReplacesWhatIsStillComputedOn) {
  const auto mistake = [&] {
    at::Tensor there = zeros_there(4);
    const c10::StreamGuard on(other_);
    there.copy_(values({4}), /*non_blocking=*/true);
  };
  EXPECT_DEATH(mistake(),
               "race: the copy to the device on stream . of privateuseone:0 writes what");
}

TEST_F(FarMutationsDeathTest, ADownloadReadsWhatIsStillComputed) {
  const auto mistake = [&] {
    const at::Tensor there = zeros_there(4);
    const c10::StreamGuard on(other_);
    at::Tensor host = at::zeros({4});
    host.copy_(there, /*non_blocking=*/true);
  };
  EXPECT_DEATH(mistake(), "race: the copy to the host on stream . of privateuseone:0 reads what");
}

TEST_F(FarMutationsDeathTest, WhatIsOnItsWayToTheHostIsChanged) {
  const auto mistake = [&] {
    DeviceCopies copies(device_);
    at::Tensor there = zeros_there(4);
    const auto download = copies.download(there);
    there.add_(1);
  };
  EXPECT_DEATH(mistake(),
               "race: aten::add_? .* writes what the copy to the host on stream . .* reads");
}

TEST_F(FarMutationsDeathTest, StagingIsReusedBeforeItsUploadIsDone) {
  const auto mistake = [&] {
    DeviceCopies copies(device_);
    at::Tensor staging = copies.staging({4});
    staging.fill_(1);
    const at::Tensor there = copies.upload(staging);
    staging.fill_(2);
    (void)there.add(1);
  };
  EXPECT_DEATH(mistake(), "staging reused too early");
}

TEST_F(FarMutationsDeathTest, StagingIsUploadedBeforeItsDownloadIsDone) {
  const auto mistake = [&] {
    DeviceCopies copies(device_);
    const auto download = copies.download(zeros_there(4));
    (void)download.host.to(device_.torch(), /*non_blocking=*/true);
  };
  EXPECT_DEATH(mistake(),
               "race: the copy to the device .* reads memory of the host that the copy to "
               "the host .* writes");
}

TEST_F(FarMutationsDeathTest, TwoStreamsWriteTheSame) {
  const auto mistake = [&] {
    const at::Tensor there = zeros_there(4);
    const c10::StreamGuard on(other_);
    there.fill_(1);
  };
  EXPECT_DEATH(mistake(), "race: aten::fill_ on stream . .* writes what aten::.* on stream 0");
}

TEST_F(FarMutations, TwoStreamsWriteDifferentParts) {
  const at::Tensor there = zeros_there(8);
  DeviceEvent(computing()).block_stream(other_);
  {
    const c10::StreamGuard on(other_);
    there.slice(0, 0, 4).fill_(1);
  }
  there.slice(0, 4).fill_(2);
  DeviceEvent(other_).block_stream(computing());
  EXPECT_EQ(there.sum().item<float>(), 12.0F);
}

TEST_F(FarMutationsDeathTest, MemoryIsFreedWhileAnotherStreamMayUseIt) {
  const auto mistake = [&] {
    at::Tensor there = zeros_there(4);
    DeviceEvent(computing()).block_stream(other_);
    const c10::StreamGuard on(other_);
    const at::Tensor sum = there + 1;
    there.reset();
  };
  EXPECT_DEATH(mistake(), "is freed while aten::add on stream .* record that stream");
}

TEST_F(FarMutations, MemoryIsFreedWhileARecordedStreamUsesIt) {
  for (const bool by_guard : {true, false}) {
    at::Tensor there = zeros_there(4);
    DeviceEvent(computing()).block_stream(other_);
    const c10::StreamGuard on(other_);
    const at::Tensor sum = there + 1;
    if (by_guard) {
      guard_.recordDataPtrOnStream(there.storage().data_ptr(), other_);
    } else {
      there.record_stream(other_);
    }
    there.reset();
    EXPECT_EQ(sum.sum().item<float>(), 4.0F);
  }
}

TEST_F(FarMutations, MoreMemoryThanThereIsIsAnException) {
  const std::uint64_t before = motley_far_bytes(0);
  try {
    (void)at::empty({std::int64_t{1} << 40}, at::device(device_.torch()));
    FAIL() << "4 TiB were found";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("out of memory. Tried to allocate"));
  }
  motley_far_limit_memory(before + (1U << 20U));
  const at::Tensor half = at::empty({1 << 17}, at::device(device_.torch()));
  EXPECT_THROW((void)half.repeat({4}), c10::OutOfMemoryError);
  EXPECT_EQ(motley_far_bytes(0), before + (1U << 19U));
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  EXPECT_EQ(motley_device_memory(&free_bytes, &all_bytes), 0);
  EXPECT_EQ(free_bytes, 1U << 19U);
  EXPECT_EQ(all_bytes, before + (1U << 20U));
  motley_far_limit_memory(UINT64_MAX);
}

TEST_F(FarMutations, ThePeakOfMemoryIsKept) {
  const std::uint64_t before = motley_far_bytes(0);
  motley_far_reset_counters();
  EXPECT_EQ(motley_far_peak_bytes(0), before);
  (void)at::empty({1 << 20}, at::device(device_.torch()));
  EXPECT_EQ(motley_far_bytes(0), before);
  EXPECT_EQ(motley_far_peak_bytes(0), before + (4U << 20U));
}

}  // namespace
}  // namespace motley

// Copies between the host and a device, on the far device, which ends the process if a wait is
// missing (far_mutations_test.cc).
#include "models/device/device_copies.h"

#include <cmath>
#include <thread>
#include <vector>

#include <c10/core/InferenceMode.h>

#include "models/device/torch_compat.h"
#include "tests/models/far_fixture.h"

namespace motley {
namespace {

using FarCopies = FarDevice;

TEST_F(FarCopies, WhatIsUploadedIsComputedOn) {
  DeviceCopies copies(device_);
  at::Tensor host = copies.staging({4, 6});
  host.copy_(values({4, 6}));
  const at::Tensor there = copies.upload(host);
  EXPECT_EQ(there.device(), device_.torch());
  EXPECT_TRUE(same_bits((there + 1).cpu(), values({4, 6}) + 1));
}

TEST_F(FarCopies, StagingIsPinnedWhereTheDeviceIsAskedForSuchMemory) {
  DeviceCopies copies(device_);
  const bool is_asked = MOTLEY_TORCH_SINCE(2, 6);
  EXPECT_EQ(copies.staging({4, 6}).is_pinned(device_.torch()), is_asked);
}

TEST_F(FarCopies, WhatIsUploadedIntoMemoryReplacesIt) {
  DeviceCopies copies(device_);
  at::Tensor there = at::zeros({4, 6}, at::device(device_.torch()));
  const at::Tensor before = there + 1;
  copies.upload(values({4, 6}), there);
  EXPECT_TRUE(same_bits(there.mul(2).cpu(), values({4, 6}) * 2));
  EXPECT_TRUE(same_bits(before.cpu(), at::ones({4, 6})));
}

TEST_F(FarCopies, WhatIsDownloadedIsThereAfterTheWait) {
  DeviceCopies copies(device_);
  at::Tensor there = on_device(values({5, 3}));
  there.mul_(3);
  const auto download = copies.download(there);
  EXPECT_TRUE(std::isnan(download.host[0][0].item<float>()));
  download.wait();
  EXPECT_TRUE(same_bits(download.host, values({5, 3}) * 3));

  at::Tensor mirror = at::zeros({10, 3});
  copies.download(there, mirror.slice(0, 5)).wait();
  EXPECT_TRUE(same_bits(mirror.slice(0, 5), values({5, 3}) * 3));
  EXPECT_TRUE(same_bits(mirror.slice(0, 0, 5), at::zeros({5, 3})));
}

TEST_F(FarCopies, WhatIsMadeBesideTheCopiesIsWhatCrosses) {
  DeviceCopies copies(device_);
  const at::Tensor host = values({64});
  motley_far_reset_counters();
  at::Tensor there = copies.upload(
      host.to(at::kHalf), [](const at::Tensor& halves) { return halves.to(at::kFloat).mul_(2); });
  there.add_(1);
  const auto download =
      copies.download(there, [](const at::Tensor& floats) { return floats.to(at::kHalf); });
  there = there * 0;  // its memory may be reused, but not before it is read
  EXPECT_EQ(counters().host_waits, 0U);
  EXPECT_EQ(counters().bytes_to_device, 128U);
  EXPECT_EQ(counters().bytes_from_device, 128U);
  download.wait();
  const at::Tensor expected = host.to(at::kHalf).to(at::kFloat).mul_(2).add_(1).to(at::kHalf);
  EXPECT_TRUE(same_bits(download.host, expected));
}

TEST_F(FarCopies, AnotherThreadMayWaitOutsideOfInference) {
  DeviceCopies copies(device_);
  DeviceCopies::Download download;
  {
    const c10::InferenceMode inference;
    const at::Tensor there = copies.upload(values({64}));
    download = copies.download(there.neg());
  }
  std::thread([&] { download.wait(); }).join();
  EXPECT_TRUE(same_bits(download.host, values({64}).neg()));
}

TEST_F(FarCopies, CopiesDoNotMakeTheHostWait) {
  DeviceCopies copies(device_);
  motley_far_reset_counters();
  std::vector<DeviceCopies::Download> downloads;
  for (int i = 0; i < 10; ++i) {
    const at::Tensor there = copies.upload(values({32}) + i);
    downloads.push_back(copies.download(there * 2));
  }
  EXPECT_EQ(counters().host_waits, 0U);
  EXPECT_EQ(counters().copies_to_device, 10U);
  EXPECT_EQ(counters().bytes_to_device, 1280U);
  EXPECT_EQ(counters().copies_from_device, 10U);
  for (int i = 0; i < 10; ++i) {
    const auto& download = downloads[static_cast<std::size_t>(i)];
    download.wait();
    EXPECT_TRUE(same_bits(download.host, (values({32}) + i) * 2)) << i;
  }
  // After the wait for the first, the others are already done; several may complete together.
  EXPECT_GE(counters().host_waits, 1U);
  EXPECT_LE(counters().host_waits, 10U);
}

TEST_F(FarCopies, CopiesThatAreDoneKeepNoMemory) {
  DeviceCopies copies(device_);
  const std::uint64_t before = motley_far_bytes(0);
  for (int i = 0; i < 50; ++i) {
    copies.download(copies.upload(values({1024}))).wait();
  }
  // The last copy's memory may be held until the next copy.
  EXPECT_LE(motley_far_bytes(0), before + 3 * 4096);
}

TEST_F(FarCopies, PartsOfOneArenaGoTheirOwnWays) {
  DeviceCopies copies(device_);
  const at::Tensor arena = at::zeros({8, 256}, at::device(device_.torch()));
  std::vector<DeviceCopies::Download> downloads;
  for (int layer = 7; layer >= 0; --layer) {
    arena[layer].add_(layer);  // while the copies of higher layers are in flight
    downloads.push_back(copies.download(arena[layer]));
  }
  for (int layer = 7; layer >= 0; --layer) {
    const auto& download = downloads[static_cast<std::size_t>(7 - layer)];
    download.wait();
    EXPECT_TRUE(same_bits(download.host, at::full({256}, layer, at::kFloat)));
  }
}

TEST_F(FarCopies, StagingIsReusedOnceItsCopyIsDone) {
  DeviceCopies copies(device_);
  at::Tensor staging = copies.staging({16});
  at::Tensor there = at::empty({16}, at::device(device_.torch()));
  for (int i = 0; i < 4; ++i) {
    staging.fill_(i);
    copies.upload(staging, there);
    const auto download = copies.download(there + 0);
    download.wait();  // the download is ordered after the upload
    EXPECT_TRUE(same_bits(download.host, at::full({16}, i, at::kFloat)));
  }
}

TEST_F(FarCopies, AnEventIsDoneAfterAWhile) {
  const at::Tensor there = on_device(values({8}));
  const c10::Stream stream(c10::Stream::DEFAULT, device_.torch());
  const at::Tensor sum = there + 1;
  const DeviceEvent event(stream);
  EXPECT_FALSE(event.is_done());
  int asked = 1;
  while (!event.is_done()) ++asked;
  EXPECT_LE(asked, 10);
  event.wait(1);
  EXPECT_TRUE(event.is_done());
}

TEST_F(FarCopies, TheSecondDeviceCopiesToo) {
  const ComputeDevice second = open_far_device("privateuseone:1");
  DeviceCopies copies(second);
  const at::Tensor there = copies.upload(values({9}));
  EXPECT_EQ(there.device(), second.torch());
  const at::Tensor first = (there * 2).to(device_.torch());
  EXPECT_EQ(first.device(), device_.torch());
  device_.make_current();
  EXPECT_TRUE(same_bits((first + 1).cpu(), values({9}) * 2 + 1));
}

}  // namespace
}  // namespace motley

// File transfer between two ranks: the received file has exactly the ordered bytes.
#include <sys/stat.h>

#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/progress_counter.h"
#include "tests/checkpoint/transfer_fixture.h"

namespace motley {
namespace {

using testing::bytes_of_size;
using testing::GivenFile;
using testing::kGiver;
using testing::kLaunch;
using testing::kPartBytes;
using testing::kSmallParts;
using testing::kTaker;
using testing::names_in;
using testing::RankPair;
using testing::read_bytes;
using testing::some_tensors;
using testing::TempFolder;
using testing::write_bytes;

constexpr std::size_t kSizes[] = {0,    1,    7,    8,    kPartBytes - 1, kPartBytes,
                                  1001, 2000, 2999, 3000, 3001,           123 * kPartBytes + 456};

class FileTransfer : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] std::filesystem::path target() const { return folder_.path() / "target"; }

  RankPair ranks_{GetParam()};
  TempFolder folder_;
};

TEST_P(FileTransfer, GivesWholeFilesOfAnySize) {
  std::int32_t stream = 0;
  for (const std::size_t size : kSizes) {
    GivenFile file(folder_.path(), "file", bytes_of_size(size));
    file.order.stream = stream++;
    const auto outcome = ranks_.give(file, target());
    EXPECT_OK(outcome.sent);
    ASSERT_OK(outcome.received);
    EXPECT_EQ(read_bytes(target()), bytes_of_size(size));
    std::filesystem::remove(target());
  }
}

// The folder already contains an abandoned attempt and a damaged file.
TEST_P(FileTransfer, PutsAFileIntoAPart) {
  const GivenFile file(folder_.path(), "file", bytes_of_size(4321));
  const std::filesystem::path part = folder_.path() / "part";
  std::filesystem::create_directory(part);
  write_bytes(part / (std::string(".file.") + kLaunch), "half");
  write_bytes(part / "file", "damaged");
  const auto outcome = ranks_.give_into({part, kLaunch}, file);
  EXPECT_OK(outcome.sent);
  ASSERT_OK(outcome.received);
  EXPECT_EQ(read_bytes(part / "file"), bytes_of_size(4321));
  EXPECT_EQ(names_in(part), std::vector<std::string>{"file"});
}

TEST_P(FileTransfer, GivesOneFileAfterTheOtherOnOneStream) {
  const GivenFile file(folder_.path(), "file", bytes_of_size(4321));
  for (int round = 0; round < 3; ++round) {
    const auto outcome = ranks_.give(file, target());
    EXPECT_OK(outcome.sent);
    ASSERT_OK(outcome.received);
    std::filesystem::remove(target());
  }
}

TEST_P(FileTransfer, GivesTheOrderedTensorsAndZerosForTheRest) {
  const GivenFile file(folder_.path(), some_tensors(), {{"a", "m", "none"}});
  const auto outcome = ranks_.give(file, target());
  EXPECT_OK(outcome.sent);
  ASSERT_OK(outcome.received);
  const auto received = SafetensorsFile::open(target());
  ASSERT_OK(received);
  EXPECT_EQ(received->metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_EQ(read_bytes(target()).size(), file.order.file.bytes);
  for (OwnedTensor tensor : some_tensors()) {
    std::vector<float> values(tensor.values.size(), -1);
    ASSERT_OK(received->read(tensor.name, tensor.shape, values));
    if (!file.order.tensors->contains(tensor.name)) tensor.values.assign(values.size(), 0);
    EXPECT_EQ(values, tensor.values) << tensor.name;
  }
}

TEST_P(FileTransfer, GivesAllTensorsAsTheWholeFile) {
  const GivenFile file(folder_.path(), some_tensors(), {{"a", "b", "m", "none", "z"}});
  const auto outcome = ranks_.give(file, target());
  EXPECT_OK(outcome.sent);
  ASSERT_OK(outcome.received);
  EXPECT_EQ(read_bytes(target()), read_bytes(file.path));
}

TEST_P(FileTransfer, GivesAHeaderWithoutTensors) {
  const GivenFile file(folder_.path(), some_tensors(), std::set<std::string>{});
  const auto outcome = ranks_.give(file, target());
  EXPECT_OK(outcome.sent);
  ASSERT_OK(outcome.received);
  const auto received = SafetensorsFile::open(target());
  ASSERT_OK(received);
  EXPECT_EQ(received->entries().size(), some_tensors().size());
}

// Tensors that were not ordered use neither the link nor the disk.
TEST_P(FileTransfer, LeavesOutWhatWasNotOrdered) {
  std::vector<OwnedTensor> tensors = {{"large", {1 << 20}, std::vector<float>(1 << 20, 1)},
                                      {"small", {2}, {1, 2}}};
  const GivenFile file(folder_.path(), tensors, {{"small"}});
  std::uint64_t wire_bytes = 0;
  ranks_.group().run([&](Rank self) {
    FrameLink link = ranks_.link(self);
    if (self == kGiver) {
      EXPECT_OK(send_file(link, kTaker, file.order, file.path, kSmallParts, StallTimeout(20), {},
                          nullptr));
      wire_bytes = link.wire_bytes();
    } else {
      EXPECT_OK(receive_file(link, kGiver, file.order, target(), kSmallParts, StallTimeout(20), {},
                             nullptr));
    }
  });
  EXPECT_LT(wire_bytes, 1000U);

  struct stat info {};

  ASSERT_EQ(::stat(target().c_str(), &info), 0);
  EXPECT_EQ(info.st_size, static_cast<off_t>(file.order.file.bytes));
  EXPECT_LT(info.st_blocks * 512, 1 << 20);
}

TEST_P(FileTransfer, GivesSeveralFilesAtOnceInBothDirections) {
  constexpr std::int32_t kStreams = 4;
  std::vector<GivenFile> files;
  for (std::int32_t stream = 0; stream < kStreams; ++stream) {
    files.emplace_back(folder_.path(), "file-" + std::to_string(stream),
                       bytes_of_size(50'000 + static_cast<std::size_t>(stream)));
    files.back().order.stream = stream;
  }
  const auto received_path = [&](Rank self, std::int32_t stream) {
    return folder_.path() / ("to-" + std::to_string(self.value) + "-" + std::to_string(stream));
  };
  ranks_.group().run([&](Rank self) {
    const Rank other = self == kGiver ? kTaker : kGiver;
    std::vector<std::jthread> threads;
    for (const GivenFile& file : files) {
      threads.emplace_back([&, link = ranks_.link(self)]() mutable {
        EXPECT_OK(send_file(link, other, file.order, file.path, kSmallParts, StallTimeout(20), {},
                            nullptr));
      });
      threads.emplace_back([&, link = ranks_.link(self)]() mutable {
        EXPECT_OK(receive_file(link, other, file.order, received_path(self, file.order.stream),
                               kSmallParts, StallTimeout(20), {}, nullptr));
      });
    }
  });
  for (const GivenFile& file : files) {
    for (const Rank self : {kGiver, kTaker}) {
      EXPECT_EQ(read_bytes(received_path(self, file.order.stream)), read_bytes(file.path));
    }
  }
}

TEST_P(FileTransfer, CountsWhatIsDone) {
  const GivenFile file(folder_.path(), "file", bytes_of_size(12'345'678));
  const TransferRate pace;
  ProgressCounter given;
  ProgressCounter taken;
  ranks_.group().run([&](Rank self) {
    FrameLink link = ranks_.link(self);
    ProgressCounter& work = self == kGiver ? given : taken;
    const ProgressCounter::Task task(work, "copying", file.order.file.bytes);
    if (self == kGiver) {
      EXPECT_OK(send_file(link, kTaker, file.order, file.path, pace, StallTimeout(20), {}, &work));
    } else {
      EXPECT_OK(
          receive_file(link, kGiver, file.order, target(), pace, StallTimeout(20), {}, &work));
    }
    EXPECT_EQ(work.words(), "copying: 12.3 of 12.3 MB");
  });
}

TEST_P(FileTransfer, BesideTrainingGivesTheSame) {
  const GivenFile file(folder_.path(), "file", bytes_of_size(1'000'000));
  const auto outcome = ranks_.give(file, target(), kBackgroundRate);
  EXPECT_OK(outcome.sent);
  ASSERT_OK(outcome.received);
  EXPECT_EQ(read_bytes(target()), read_bytes(file.path));
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         FileTransfer,
                         ::testing::Values("inproc", "tcp", "tls"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace motley

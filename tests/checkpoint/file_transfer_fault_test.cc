// Failures of a transfer: both ends report the cause, and no partial file remains.
#include <chrono>
#include <cstring>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/transfer/file_messages.h"
#include "tests/checkpoint/transfer_fixture.h"

namespace motley {
namespace {

using ::testing::AllOf;
using testing::bytes_of_size;
using testing::fault_of;
using testing::GivenFile;
using ::testing::HasSubstr;
using testing::kGiver;
using testing::kPartBytes;
using testing::kSmallParts;
using testing::kTaker;
using testing::Outcome;
using testing::RankPair;
using testing::read_bytes;
using testing::some_tensors;
using testing::TempFolder;
using testing::write_bytes;

class FileTransferFault : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] std::filesystem::path target() const { return folder_.path() / "target"; }

  // Both ends end with kCorrupt and these texts, no file remains, and the stream is still usable.
  void expect_fault(const Outcome& outcome,
                    const std::string& sender_says,
                    const std::string& receiver_says) {
    EXPECT_CORRUPT(outcome.sent, sender_says);
    EXPECT_CORRUPT(outcome.received, receiver_says);
    EXPECT_FALSE(std::filesystem::exists(target()));
    const GivenFile next(folder_.path(), "next", bytes_of_size(5000));
    const auto after = ranks_.give(next, target());
    EXPECT_OK(after.sent);
    EXPECT_OK(after.received);
    EXPECT_EQ(read_bytes(target()), bytes_of_size(5000));
    std::filesystem::remove(target());
  }

  RankPair ranks_{GetParam()};
  TempFolder folder_;
  GivenFile file_{folder_.path(), "file", bytes_of_size(20'000)};
};

TEST_P(FileTransferFault, NamesAFileThatIsGone) {
  std::filesystem::remove(file_.path);
  const auto outcome = ranks_.give(file_, target());
  EXPECT_THAT(fault_of(outcome.received), HasSubstr("rank 0 could not send it"));
  EXPECT_THAT(fault_of(outcome.received), HasSubstr("receiving file of step 100 from rank 0"));
  EXPECT_THAT(fault_of(outcome.sent), HasSubstr("sending file of step 100 to rank 1"));
  expect_fault(outcome, "No such file", "No such file");
}

TEST_P(FileTransferFault, NamesAFileOfAnotherSize) {
  write_bytes(file_.path, bytes_of_size(19'999));
  expect_fault(ranks_.give(file_, target()), "it has 19999 bytes; the manifest says 20000",
               "it has 19999 bytes; the manifest says 20000");
}

TEST_P(FileTransferFault, NamesAFileWithAFlippedBit) {
  for (const std::size_t at : {0U, 10'000U, 19'999U}) {
    std::string bytes = bytes_of_size(20'000);
    bytes[at] ^= 4;
    write_bytes(file_.path, bytes);
    expect_fault(ranks_.give(file_, target()), "rank 1 refused it: damaged checkpoint",
                 "the hash of all of it is");
  }
}

TEST_P(FileTransferFault, NamesATensorWithAFlippedBit) {
  const GivenFile file(folder_.path(), some_tensors(), {{"m", "z", "a"}});
  std::string bytes = read_bytes(file.path);
  bytes[bytes.size() - 1 - 4 - 5000] ^= 1;  // in "z", which precedes "a" in the file
  write_bytes(file.path, bytes);
  expect_fault(ranks_.give(file, target()), "the hash of tensor 'z' is",
               "the hash of tensor 'z' is");
}

TEST_P(FileTransferFault, NamesAFileThatIsNoSafetensors) {
  GivenFile file(folder_.path(), some_tensors(), {{"m"}});
  const std::size_t size = read_bytes(file.path).size();
  write_bytes(file.path, std::string(size, '\xff'));
  expect_fault(ranks_.give(file, target()), "not a safetensors file", "not a safetensors file");
  write_bytes(file.path, std::string(8, '\0') + std::string(size - 8, '{'));
  expect_fault(ranks_.give(file, target()), "does not start", "does not start");
}

// The receiver stops writing in the middle of the transfer, and the sender stops reading.
TEST_P(FileTransferFault, TellsTheSenderWhatTheReceiverRefuses) {
  FileOrder smaller = file_.order;
  smaller.file.bytes = 10'000;
  expect_fault(ranks_.give(file_.order, file_.path, smaller, target()),
               "rank 1 refused it: damaged checkpoint",
               "it has 20000 bytes; the manifest says 10000");
  FileOrder tensors = file_.order;
  tensors.tensors.emplace();
  expect_fault(ranks_.give(file_.order, file_.path, tensors, target()),
               "rank 1 refused it: damaged safetensors file", "does not fit");
}

// Without this report the sender would announce a copy that does not exist.
TEST_P(FileTransferFault, TellsTheSenderThatAPartDoesNotTakeTheFile) {
  const GivenFile file(folder_.path(), "file", bytes_of_size(4321));
  const std::filesystem::path part = folder_.path() / "part";
  std::filesystem::create_directories(part / "file" / "in the way");
  const auto outcome = ranks_.give_into({part, testing::kLaunch}, file);
  EXPECT_CORRUPT(outcome.received, "cannot rename");
  EXPECT_CORRUPT(outcome.sent, "cannot rename");
  EXPECT_EQ(testing::names_in(part), std::vector<std::string>{"file"});
}

TEST_P(FileTransferFault, EndsWhenTheReceiverCannotWrite) {
  const auto absent = folder_.path() / "absent" / "target";
  expect_fault(ranks_.give(file_, absent), "cannot write", "cannot write");
}

TEST_P(FileTransferFault, EndsWhenTheSenderIsLost) {
  ranks_.group().run([&](Rank self) {
    FrameLink link = ranks_.link(self);
    if (self == kGiver) {
      // Sends only the first part.
      Buffer size(part_buffer_bytes(8));
      auto content = begin_part(size, PartKind::kMoreFollow, 8);
      std::memcpy(content.data(), &file_.order.file.bytes, 8);
      auto answer = link.recv(kTaker, FrameId::file_ack(0, 0, 100), Buffer(ack_buffer_bytes()));
      auto sent = link.send(kTaker, FrameId::file_part(0, 0, 100), std::move(size));
      EXPECT_OK(answer.wait(soon()));
      ranks_.group().destroy(kGiver);
    } else {
      const double start_s = now_s();
      const auto received = receive_file(link, kGiver, file_.order, target(), kSmallParts,
                                         StallTimeout(20), {}, nullptr);
      ASSERT_FALSE(received.ok());
      EXPECT_EQ(received.error().code, ErrorCode::kPeer);
      EXPECT_THAT(fault_of(received), HasSubstr("waiting for part 1 of file 0, step 100"));
      EXPECT_LT(now_s() - start_s, 15);
    }
  });
  EXPECT_FALSE(std::filesystem::exists(target()));
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         FileTransferFault,
                         ::testing::Values("inproc", "tcp"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace motley

// Files from senders that violate the order: refused, and nothing of them remains.
#include "checkpoint/transfer/received_file.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "checkpoint/safetensors_header.h"
#include "tests/checkpoint/transfer_fixture.h"

namespace motley {
namespace {

using testing::bytes_of_size;
using testing::GivenFile;
using testing::names_in;
using testing::read_bytes;
using testing::TempFolder;
using testing::write_bytes;

// Two tensors of 8 and 4 bytes.
std::vector<OwnedTensor> two_tensors() {
  return {{"p", {2}, {1, 2}}, {"q", {1}, {3}}};
}

std::string header_of(const std::string& tensors) {
  return "{\"__metadata__\":{\"format\":\"pt\"}" + tensors + "}";
}

class ReceivedFileTest : public ::testing::Test {
 protected:
  // The result of receiving a file of `file_bytes` bytes whose bytes arrive in pieces.
  Result<void> receive(const FileOrder& order,
                       std::uint64_t file_bytes,
                       const std::string& bytes,
                       std::size_t piece_bytes = 5) {
    ReceivedFile file(order, target(), nullptr);
    MOTLEY_TRY(file.begin(file_bytes));
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
      const std::string piece = bytes.substr(at, piece_bytes);
      MOTLEY_TRY(file.take(std::as_bytes(std::span(piece))));
    }
    return file.finish();
  }

  // The same from a sender with another header, padded to the right length if possible.
  Result<void> receive_with_header(std::string header) {
    const std::string right = read_bytes(given_.path);
    const std::size_t right_bytes = right.size() - 12 - sizeof(std::uint64_t);
    if (header.size() < right_bytes) header.resize(right_bytes, ' ');
    return receive_head(header.size(), header + right.substr(right.size() - 12));
  }

  Result<void> receive_head(std::uint64_t header_bytes, const std::string& rest) {
    std::string bytes(sizeof header_bytes, '\0');
    std::memcpy(bytes.data(), &header_bytes, sizeof header_bytes);
    return receive(given_.order, given_.order.file.bytes, bytes + rest);
  }

  [[nodiscard]] std::filesystem::path target() const { return folder_.path() / "target"; }

  void expect_nothing_left() {
    EXPECT_EQ(names_in(folder_.path()), (std::vector<std::string>{"model.safetensors"}));
  }

  TempFolder folder_;
  GivenFile given_{folder_.path(), two_tensors(), {{"p", "q"}}};
};

TEST_F(ReceivedFileTest, TakesPiecesOfAnySize) {
  const std::string bytes = read_bytes(given_.path);
  for (std::size_t piece_bytes = 1; piece_bytes <= bytes.size(); ++piece_bytes) {
    ASSERT_OK(receive(given_.order, bytes.size(), bytes, piece_bytes));
    EXPECT_EQ(read_bytes(target()), bytes);
    std::filesystem::remove(target());
  }
}

TEST_F(ReceivedFileTest, RefusesAHeaderThatDoesNotFit) {
  EXPECT_CORRUPT(receive_head(kSafetensorsHeaderBytesMax + 1, "{}"), "does not fit");
  EXPECT_CORRUPT(receive_head(given_.order.file.bytes - 7, "{}"), "does not fit");
  EXPECT_CORRUPT(receive_head(~std::uint64_t{0}, "{}"), "does not fit");
  EXPECT_CORRUPT(receive_head(0, "{}"), "does not start with '{'");
  expect_nothing_left();
}

TEST_F(ReceivedFileTest, RefusesAHeaderOfOtherTensors) {
  EXPECT_CORRUPT(
      receive_with_header(header_of(R"(,"p":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})"
                                    R"(,"r":{"dtype":"F32","shape":[1],"data_offsets":[8,12]})")),
      "the manifest lacks its tensor 'r'");
  EXPECT_CORRUPT(
      receive_with_header(header_of(R"(,"p":{"dtype":"F32","shape":[3],"data_offsets":[0,12]})")),
      "it lacks tensor 'q' of the manifest");
  expect_nothing_left();
}

TEST_F(ReceivedFileTest, RefusesAHeaderThatLiesAboutPlaces) {
  EXPECT_CORRUPT(
      receive_with_header(header_of(R"(,"p":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})"
                                    R"(,"q":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})")),
      "tensor 'q' begins at 4, where 8 was expected");
  EXPECT_CORRUPT(
      receive_with_header(header_of(R"(,"p":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})"
                                    R"(,"q":{"dtype":"F32","shape":[2],"data_offsets":[8,16]})")),
      "the tensors need 16 bytes, but the file has 12");
  EXPECT_CORRUPT(receive_with_header(header_of(
                     R"(,"p":{"dtype":"F32","shape":[2],"data_offsets":[0,8000000000000]})"
                     R"(,"q":{"dtype":"F32","shape":[1],"data_offsets":[8,12]})")),
                 "does not match its offsets");
  EXPECT_CORRUPT(receive_with_header("no JSON"), "does not start with '{'");
  expect_nothing_left();
}

// Exchanged tensors have each other's sizes but not the values.
TEST_F(ReceivedFileTest, RefusesValuesThatAreNotTheTensors) {
  EXPECT_CORRUPT(
      receive_with_header(header_of(R"(,"q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})"
                                    R"(,"p":{"dtype":"F32","shape":[2],"data_offsets":[4,12]})")),
      "the hash of tensor 'q' is");
  std::string bytes = read_bytes(given_.path);
  bytes.back() ^= 1;
  EXPECT_CORRUPT(receive(given_.order, bytes.size(), bytes), "the hash of tensor 'q' is");
  expect_nothing_left();
}

TEST_F(ReceivedFileTest, RefusesMoreAndLessThanWasOrdered) {
  const std::string bytes = read_bytes(given_.path);
  EXPECT_CORRUPT(receive(given_.order, bytes.size() + 1, bytes), "the manifest says");
  EXPECT_CORRUPT(receive(given_.order, bytes.size(), bytes + "x"), "more bytes were received");
  EXPECT_CORRUPT(receive(given_.order, bytes.size(), bytes.substr(0, bytes.size() - 1)),
                 "1 of its bytes are missing");
  EXPECT_CORRUPT(receive(given_.order, bytes.size(), bytes.substr(0, 30)),
                 "its header is incomplete");
  EXPECT_CORRUPT(receive(given_.order, bytes.size(), ""), "its header is incomplete");
  FileOrder tiny = given_.order;
  tiny.file.bytes = 7;
  EXPECT_CORRUPT(receive(tiny, 7, "1234567"), "it has 7 bytes");
  expect_nothing_left();
}

TEST_F(ReceivedFileTest, RefusesATensorThatTheFileDoesNotHave) {
  FileOrder order = given_.order;
  order.tensors->insert("r");
  EXPECT_CORRUPT(receive(order, order.file.bytes, read_bytes(given_.path)), "it lacks tensor 'r'");
  expect_nothing_left();
}

TEST_F(ReceivedFileTest, RefusesAWholeFileOfAnotherHash) {
  const FileOrder order{.file = testing::written("f", bytes_of_size(100))};
  std::string other = bytes_of_size(100);
  other[50] ^= 1;
  EXPECT_CORRUPT(receive(order, 100, other), "the hash of all of it is");
  FileOrder empty{.file = testing::written("f", "")};
  empty.file.hash = order.file.hash;
  EXPECT_CORRUPT(receive(empty, 0, ""), "the hash of all of it is");
  expect_nothing_left();
}

TEST_F(ReceivedFileTest, TouchesNothingThatIsThere) {
  const std::string bytes = read_bytes(given_.path);
  write_bytes(target(), "mine");
  EXPECT_CORRUPT(receive(given_.order, bytes.size(), bytes), "File exists");
  EXPECT_EQ(read_bytes(target()), "mine");
  std::filesystem::remove(target());
  std::filesystem::create_symlink(folder_.path() / "elsewhere", target());
  EXPECT_CORRUPT(receive(given_.order, bytes.size(), bytes), "File exists");
  EXPECT_TRUE(std::filesystem::is_symlink(target()));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "elsewhere"));
}

TEST_F(ReceivedFileTest, RefusesASizeThatNoFileHas) {
  FileOrder order = given_.order;
  order.file.bytes = ~std::uint64_t{0};
  EXPECT_CORRUPT(receive(order, order.file.bytes, ""), "cannot write");
  expect_nothing_left();
}

}  // namespace
}  // namespace motley

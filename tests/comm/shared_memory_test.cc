#include "comm/transport/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBytes = 10'000;

SharedMemory made(std::size_t bytes = kBytes) {
  auto memory = SharedMemory::make(bytes);
  EXPECT_TRUE(memory.ok()) << describe(memory.error());
  return std::move(memory).value();
}

std::string refusal(const MemoryOffer& offer, std::size_t bytes = kBytes) {
  const auto memory = SharedMemory::open(offer, bytes);
  if (memory.ok()) return "none";
  EXPECT_EQ(memory.error().code, ErrorCode::kPeer);
  return memory.error().cause;
}

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

TEST(SharedMemory, BeginsAsZerosOnACacheLine) {
  const SharedMemory memory = made();
  EXPECT_EQ(memory.bytes().size(), kBytes);
  EXPECT_TRUE(std::ranges::all_of(memory.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.bytes().data()) % 64, 0U);
}

TEST(SharedMemory, IsSeenByAnotherProcess) {
  const SharedMemory memory = made();
  memory.bytes().front() = std::byte{5};
  const pid_t child = ::fork();
  if (child == 0) {
    const auto opened = SharedMemory::open(memory.offer(), kBytes);
    if (!opened.ok() || opened->bytes().front() != std::byte{5}) ::_exit(1);
    opened->bytes().back() = std::byte{6};
    ::_exit(0);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.bytes().back(), std::byte{6});
}

TEST(SharedMemory, OutlivesTheOneWhoMadeIt) {
  auto first = std::make_unique<SharedMemory>(made());
  const auto second = SharedMemory::open(first->offer(), kBytes);
  ASSERT_TRUE(second.ok()) << describe(second.error());
  first->bytes().front() = std::byte{7};
  first.reset();
  EXPECT_EQ(second->bytes().front(), std::byte{7});
}

TEST(SharedMemory, CannotBeOpenedOnceItIsWithdrawn) {
  SharedMemory memory = made();
  memory.withdraw();
  EXPECT_THAT(refusal(memory.offer()), HasSubstr("not accessible"));
}

TEST(SharedMemory, KeepsNoFilesOpen) {
  const auto before = open_files();
  {
    SharedMemory memory = made();
    const auto opened = SharedMemory::open(memory.offer(), kBytes);
    EXPECT_EQ(open_files(), before + 1);
    EXPECT_THAT(refusal(memory.offer(), 2 * kBytes), HasSubstr("size"));
    memory.withdraw();
    EXPECT_EQ(open_files(), before);
  }
  EXPECT_EQ(open_files(), before);
}

TEST(SharedMemory, OffersDiffer) {
  EXPECT_NE(made().offer().nonce, made().offer().nonce);
}

TEST(SharedMemoryOffer, IsRefusedForOtherMemory) {
  const SharedMemory memory = made();
  MemoryOffer offer = memory.offer();
  EXPECT_EQ(refusal(offer), "none");
  ++offer.nonce;
  EXPECT_THAT(refusal(offer), HasSubstr("not the one that was offered"));
  EXPECT_THAT(refusal(memory.offer(), kBytes - 1), HasSubstr("size"));
}

TEST(SharedMemoryOffer, IsRefusedForWhatIsNotThere) {
  EXPECT_THAT(refusal({}), HasSubstr("not accessible"));
  EXPECT_THAT(refusal({static_cast<std::uint32_t>(::getpid()), 99'999, 1}),
              HasSubstr("not accessible"));
  EXPECT_THAT(refusal({0xFFFFFFFF, 0xFFFFFFFF, 1}), HasSubstr("not accessible"));
}

// None of these is even opened, as opening a pipe or a device may have side effects.
TEST(SharedMemoryOffer, IsRefusedForOtherKindsOfFiles) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const int device = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int other = ::memfd_create("other", MFD_CLOEXEC);
  for (const int file : {ends[0], device, other}) {
    EXPECT_THAT(
        refusal({static_cast<std::uint32_t>(::getpid()), static_cast<std::uint32_t>(file), 1}),
        HasSubstr("not accessible"));
  }
  for (const int file : {ends[0], ends[1], device, other}) ::close(file);
}

// A peer that can shrink the memory could crash this process.
TEST(SharedMemoryOffer, IsRefusedForMemoryThatCanShrink) {
  constexpr std::size_t kHeadBytes = 64;
  const int file = ::memfd_create("motley", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(file, kBytes + kHeadBytes), 0);
  const MemoryOffer offer{static_cast<std::uint32_t>(::getpid()), static_cast<std::uint32_t>(file),
                          0};
  EXPECT_THAT(refusal(offer), HasSubstr("or not fixed"));
  ASSERT_EQ(::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_EQ(refusal(offer), "none");
  ::close(file);
}

}  // namespace
}  // namespace motley

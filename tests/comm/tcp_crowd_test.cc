// Ten thousand foreign connections while a group connects and works: they take a bounded number of
// sockets and little memory, disturb no message and keep no rank out.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/make_transport.h"
#include "comm/stranger.h"
#include "comm/transport/transport.h"
#include "support/rank_group.h"

namespace motley {
namespace {

constexpr Rank kRank0{0};
constexpr Rank kRank1{1};
constexpr Rank kRank2{2};
constexpr std::size_t kCrowd = 10'000;
constexpr std::size_t kGuestsMax = 64;  // docs/formats/tcp.md
constexpr std::size_t kMiB = 1 << 20;
// Sanitizers delay the reuse of freed memory, and need memory for bookkeeping.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kMemoryMax = 4096 * kMiB;
#else
constexpr std::size_t kMemoryMax = 64 * kMiB;
#endif

// The number of foreign connections that this process can open in addition to its own files.
std::size_t crowd_allowed() {
  constexpr rlim_t kOwn = 500;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, kCrowd + kOwn);
  setrlimit(RLIMIT_NOFILE, &files);
  return static_cast<std::size_t>(files.rlim_cur - std::min(files.rlim_cur, kOwn));
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class Crowded : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (crowd_allowed() < kCrowd) GTEST_SKIP() << "no more than " << crowd_allowed() << " files";
    for (const Rank rank : {kRank0, kRank1}) open(rank);
  }

  void open(Rank rank) {
    auto transport = make_transport(options_for(GetParam(), rank, 3));
    ASSERT_TRUE(transport.ok()) << describe(transport.error());
    ranks_.push_back(std::move(transport).value());
  }

  // Connects from as many addresses as one machine has; every second connection sends the
  // beginning of a hello.
  void come_in_crowds() {
    const std::string begun = "MTLH";
    const std::size_t before = open_files();
    for (std::size_t i = 0; i < kCrowd; ++i) {
      crowd_.emplace_back(ranks_[0]->address(), fmt::format("127.1.{}.{}", i / 200, 1 + i % 200));
      if (!crowd_.back().connected()) ++turned_away_;
      if (i % 2 == 0) crowd_.back().try_to_say(std::as_bytes(std::span(begun)));
      if (i % 500 == 0) guests_max_ = std::max(guests_max_, open_files() - before - crowd_.size());
    }
  }

  // One message in each direction.
  void exchange(Rank a, Rank b) {
    for (const auto& [from, to] : {std::pair{a, b}, {b, a}}) {
      Buffer message(1000);
      message.set_payload_bytes(1000);
      std::ranges::fill(message.message(), std::byte{7});
      auto sent = ranks_[from.index()]->send(to, 1, std::move(message));
      const auto came = ranks_[to.index()]->recv(from, 1, Buffer(1000)).wait(soon(), "a message");
      ASSERT_TRUE(came.ok()) << describe(came.error());
    }
  }

  std::vector<std::unique_ptr<Transport>> ranks_;  // [Rank]
  std::vector<Stranger> crowd_;
  std::size_t turned_away_ = 0;
  std::size_t guests_max_ = 0;
};

TEST_P(Crowded, IsAGroupThatMeetsAndWorksAllTheSame) {
  crowd_.reserve(kCrowd);
  open(kRank2);  // listens, and connects only after the foreign connections
  std::vector<std::string> addresses;
  for (const auto& rank : ranks_) addresses.push_back(rank->address());
  std::vector<std::jthread> meeting;
  const auto meet = [&](Rank rank) {
    meeting.emplace_back([&, rank] {
      const auto met = ranks_[rank.index()]->connect(addresses, Deadline::after_s(50));
      EXPECT_TRUE(met.ok()) << describe(met.error());
    });
  };
  meet(kRank0);
  meet(kRank1);
  exchange(kRank0, kRank1);
  const std::size_t memory_before = resident_bytes();
  std::atomic<bool> all_came = false;
  std::jthread coming([&] {
    come_in_crowds();
    all_came = true;
  });
  while (!all_came) exchange(kRank0, kRank1);
  EXPECT_LT(resident_bytes(), memory_before + kMemoryMax);
  EXPECT_LE(guests_max_, kGuestsMax + 1);  // and one that is just being accepted
  EXPECT_EQ(turned_away_, 0U);
  meet(kRank2);
  meeting.clear();
  exchange(kRank0, kRank2);
  exchange(kRank1, kRank2);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Crowded, testing::Values("tcp", "tls"), [](const auto& kind) {
  return kind.param;
});

}  // namespace
}  // namespace motley

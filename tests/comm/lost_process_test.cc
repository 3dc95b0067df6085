// A peer in its own process that is killed or stopped while this process waits for it.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/make_transport.h"
#include "comm/transport/transport.h"
#include "support/rank_group.h"

extern char** environ;

namespace motley {
namespace {

using testing::HasSubstr;

constexpr Rank kPeer{1};
// Detection times of docs/failures.md.
constexpr double kKilled_s = 1;
constexpr double kFrozen_s = 10;

// The program of comm_peer_process.cc, with pipes to its stdin and stdout. Killed by the
// destructor.
class PeerProcess {
 public:
  explicit PeerProcess(std::string kind) {
    std::array<int, 2> input{};
    std::array<int, 2> output{};
    EXPECT_EQ(pipe2(input.data(), O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(output.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    std::string program = PEER_PROGRAM;
    std::array<char*, 3> arguments = {program.data(), kind.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    to_.reset(fdopen(input[1], "w"));
    from_.reset(fdopen(output[0], "r"));
  }

  ~PeerProcess() { kill(); }

  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  std::string read_line() {
    std::string line;
    for (int c = std::fgetc(from_.get()); c != EOF && c != '\n'; c = std::fgetc(from_.get())) {
      line += static_cast<char>(c);
    }
    return line;
  }

  void write_line(const std::string& line) {
    std::fprintf(to_.get(), "%s\n", line.c_str());
    std::fflush(to_.get());
  }

  void freeze() { ::kill(pid_, SIGSTOP); }

  void wake() { ::kill(pid_, SIGCONT); }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  pid_t pid_ = 0;
  std::unique_ptr<std::FILE, Close> to_;
  std::unique_ptr<std::FILE, Close> from_;
};

class LostProcess : public testing::TestWithParam<std::string> {
 protected:
  LostProcess() : LostProcess(4) {}

  explicit LostProcess(double patience_s) : patience_s_(patience_s) {}

  void SetUp() override {
    TransportOptions options = options_for(GetParam(), Rank{0}, 2);
    options.patience_s = patience_s_;
    auto transport = make_transport(options);
    ASSERT_TRUE(transport.ok()) << describe(transport.error());
    transport_ = std::move(transport).value();
    const std::string peer_address = peer_.read_line();
    peer_.write_line(transport_->address());
    const auto connected = transport_->connect({transport_->address(), peer_address}, soon());
    ASSERT_TRUE(connected.ok()) << describe(connected.error());
  }

  // One message in each direction, to verify the connection.
  void exchange() {
    Buffer message(1000);
    message.set_payload_bytes(1000);
    std::ranges::fill(message.message(), std::byte{7});
    auto sent = transport_->send(kPeer, 1, std::move(message));
    const auto answer = transport_->recv(kPeer, 1, Buffer(1000)).wait(soon(), "the answer");
    ASSERT_TRUE(answer.ok()) << describe(answer.error());
    EXPECT_EQ(answer->payload_bytes(), 1000U);
  }

  const double patience_s_;
  PeerProcess peer_{GetParam()};
  std::unique_ptr<Transport> transport_;
};

class SleepingProcess : public LostProcess {
 protected:
  SleepingProcess() : LostProcess(60) {}
};

TEST_P(LostProcess, EndsTheWaitsForAKilledPeer) {
  exchange();
  auto first = transport_->recv(kPeer, 1, Buffer(1000));
  auto second = transport_->recv(kPeer, 2, Buffer(1 << 20));
  peer_.kill();
  for (Pending* pending : {&first, &second}) {
    const auto outcome = pending->wait(Deadline::after_s(kKilled_s), "an answer");
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
    EXPECT_THAT(outcome.error().what, HasSubstr("waiting for an answer: rank 1 was lost"));
  }
}

TEST_P(LostProcess, RefusesNewOperationsWithAKilledPeer) {
  auto receive = transport_->recv(kPeer, 2, Buffer(10));
  peer_.kill();
  ASSERT_FALSE(receive.wait(soon(), "an answer").ok());
  const auto late = transport_->recv(kPeer, 3, Buffer(10)).wait(soon(), "an answer");
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error().what, HasSubstr("rank 1 was lost"));
}

TEST_P(LostProcess, IsNoticedWhenItIsFrozenWithoutAnyTraffic) {
  exchange();
  auto receive = transport_->recv(kPeer, 2, Buffer(10));
  peer_.freeze();
  const auto outcome = receive.wait(Deadline::after_s(kFrozen_s), "an answer");
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().what, HasSubstr("waiting for an answer: rank 1 was lost"));
  EXPECT_THAT(outcome.error().cause, HasSubstr("frozen"));
}

TEST_P(LostProcess, EndsASendThatItNoLongerTakesWhenItIsFrozen) {
  constexpr std::size_t kMoreThanSystemsBuffer = 64 << 20;
  exchange();
  peer_.freeze();
  Buffer large(kMoreThanSystemsBuffer);
  large.set_payload_bytes(kMoreThanSystemsBuffer);
  std::ranges::fill(large.message(), std::byte{1});
  const auto outcome = transport_->send(kPeer, 1, std::move(large))
                           .wait(Deadline::after_s(kFrozen_s), "rank 1 to take it");
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().what, HasSubstr("rank 1 was lost"));
}

// As behind a closed lid.
TEST_P(SleepingProcess, ContinuesWhereItStopped) {
  constexpr std::chrono::seconds kLongerThanTheOtherPatience(6);
  exchange();
  peer_.freeze();
  std::this_thread::sleep_for(kLongerThanTheOtherPatience);
  peer_.wake();
  exchange();
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         SleepingProcess,
                         testing::ValuesIn(network_transport_kinds()),
                         [](const auto& kind) { return kind.param; });

INSTANTIATE_TEST_SUITE_P(Kinds,
                         LostProcess,
                         testing::ValuesIn(network_transport_kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace motley

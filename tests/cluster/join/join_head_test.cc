// A head and machines that join it, through real connections of this computer.
#include "cluster/join/head/join_head.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/join/head/local_request.h"
#include "cluster/join/head/local_socket.h"
#include "cluster/join/head/needed_files.h"
#include "cluster/join/join_messages.h"
#include "cluster/join/machine/join_client.h"
#include "cluster/join/peer_address.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void pause_briefly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

template <class Condition>
bool eventually(Condition condition) {
  for (int attempt = 0; attempt < 4000; ++attempt) {
    if (condition()) return true;
    pause_briefly();
  }
  return false;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What a command on a machine has printed, and its end.
struct Ran {
  std::string output;
  std::string errors;
  JoinExit exit;
};

// A command that runs on a machine, as `motley __on` starts it.
class RemoteCommand {
 public:
  RemoteCommand(const fs::path& socket,
                const std::vector<std::string>& words,
                const fs::path& folder)
      : folder_(folder), head_(std::move(connect_local(socket)).value()) {
    EXPECT_EQ(::pipe2(input_, O_CLOEXEC), 0);
    const OwnedFd in(input_[0]);
    const OwnedFd out(::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    const OwnedFd err(::open((folder / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    write_end_ = OwnedFd(input_[1]);
    EXPECT_TRUE(send_local(head_, join_text(JoinWords{words}), {in.get(), out.get(), err.get()}));
  }

  void say(const std::string& text) {
    EXPECT_EQ(::write(write_end_.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }

  Ran end() {
    write_end_.reset();
    const auto message = receive_local(head_);
    EXPECT_TRUE(message.has_value());
    const auto exit = read_join_text<JoinExit>(message ? message->text : "");
    EXPECT_TRUE(exit.ok());
    return {text_of(folder_ / "out"), text_of(folder_ / "err"), exit.ok() ? *exit : JoinExit{}};
  }

 private:
  fs::path folder_;
  OwnedFd head_;
  int input_[2] = {-1, -1};
  OwnedFd write_end_;
};

class JoinHeadTest : public testing::Test {
 protected:
  JoinHeadTest() {
    std::string name = (fs::temp_directory_path() / "motley-join-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::create_directories(folder_ / "programs");
    program("cat; echo words >&2; exit 3");
  }

  ~JoinHeadTest() override {
    head_.reset();
    for (std::thread& joiner : joiners_) joiner.join();
    fs::remove_all(folder_);
  }

  // What motley-stage does on the machines.
  void program(const std::string& script) {
    std::ofstream(folder_ / "programs" / "motley-stage") << "#!/bin/sh\n" << script << "\n";
    fs::permissions(folder_ / "programs" / "motley-stage", fs::perms::owner_all);
  }

  void open(int places, double valid_s = 900) {
    auto head = JoinHead::open({.places = places,
                                .valid_s = valid_s,
                                .listen_address = "127.0.0.1",
                                .addresses = {"127.0.0.1"},
                                .taken_names = {"desk"},
                                .say = [this](const std::string& line) {
                                  const std::lock_guard lock(mutex_);
                                  said_ += line + "\n";
                                }});
    ASSERT_TRUE(head.ok()) << describe(head.error());
    head_ = std::move(head).value();
  }

  std::string said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }

  // Joins with the home folder `name`; returns once the head ends the session.
  Result<JoinExit> join(const std::string& name, const Ticket& ticket) {
    JoinOptions options;
    options.ticket = [&] { return ticket; };
    options.home = [home = folder_ / name](const std::string& fingerprint) {
      return JoinHome::make(nullptr, home.c_str(), fingerprint);
    };
    options.name = name;
    options.programs = folder_ / "programs";
    options.once = true;
    options.say = [](const std::string&) {};
    return join_head(options);
  }

  // The same in another thread, until the machine is there.
  void start_joining(const std::string& name) {
    joiners_.emplace_back([this, name, ticket = head_->ticket()] { (void)join(name, ticket); });
    ASSERT_TRUE(eventually([&] { return said().find(name + " has joined") != std::string::npos; }));
  }

  RemoteCommand start(const std::vector<std::string>& words) {
    return {head_->socket(), words, folder_};
  }

  [[nodiscard]] JoinedShell shell(const std::string& machine) const {
    return {"motley", head_->socket(), machine, head_->machines().front().files};
  }

  fs::path folder_;
  std::unique_ptr<JoinHead> head_;
  std::vector<std::thread> joiners_;
  std::mutex mutex_;
  std::string said_;
};

TEST_F(JoinHeadTest, RunsACommandWithItsStreamsAndStatus) {
  open(1);
  start_joining("box");
  RemoteCommand command = start({"box", "work", "motley-stage", "1"});
  command.say("line\n");
  const Ran ran = command.end();
  EXPECT_EQ(ran.output, "line\n");
  EXPECT_EQ(ran.errors, "words\n");
  EXPECT_EQ(ran.exit, (JoinExit{3, 0, ""}));
}

// More than the window of a stream, in both directions.
TEST_F(JoinHeadTest, PassesOnManyBytesInOrder) {
  program("cat");
  open(1);
  start_joining("box");
  RemoteCommand command = start({"box", "work", "motley-stage", "1"});
  std::string all;
  for (int i = 0; i < 300'000; ++i) all += fmt::format("{}\n", i);
  command.say(all);
  const Ran ran = command.end();
  EXPECT_EQ(ran.output.size(), all.size());
  EXPECT_TRUE(ran.output == all);
}

TEST_F(JoinHeadTest, ReportsTheSignalThatKilledACommand) {
  program("kill -9 $$");
  open(1);
  start_joining("box");
  EXPECT_EQ(start({"box", "work", "motley-stage", "1"}).end().exit, (JoinExit{0, SIGKILL, ""}));
}

TEST_F(JoinHeadTest, KillsACommandWhoseProcessHereHasEnded) {
  program(
      fmt::format("echo $$ >{0}.new; mv {0}.new {0}; exec sleep 1000", (folder_ / "pid").string()));
  open(1);
  start_joining("box");
  {
    RemoteCommand command = start({"box", "work", "motley-stage", "1"});
    ASSERT_TRUE(eventually([&] { return fs::exists(folder_ / "pid"); }));
  }
  const pid_t pid = std::stoi(text_of(folder_ / "pid"));
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
}

TEST_F(JoinHeadTest, LeavesNoCommandBehindWhenTheRunEnds) {
  program(fmt::format("trap '' TERM; echo $$ >{0}.new; mv {0}.new {0}; exec sleep 1000",
                      (folder_ / "pid").string()));
  open(1);
  start_joining("box");
  RemoteCommand command = start({"box", "work", "motley-stage", "1"});
  ASSERT_TRUE(eventually([&] { return fs::exists(folder_ / "pid"); }));
  head_.reset();
  const pid_t pid = std::stoi(text_of(folder_ / "pid"));
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
}

TEST_F(JoinHeadTest, RunsNoOtherPrograms) {
  open(1);
  start_joining("box");
  const Ran ran = start({"box", "sh", "-c", "true"}).end();
  EXPECT_THAT(ran.exit.problem, HasSubstr("Motley's programs only"));
}

TEST_F(JoinHeadTest, SaysThatAMachineIsNotConnected) {
  open(1);
  EXPECT_THAT(start({"box", "has", "motley-stage"}).end().exit.problem,
              HasSubstr("box is not connected"));
}

TEST_F(JoinHeadTest, RefusesATicketThatWasUsed) {
  open(1);
  start_joining("box");
  const auto refused = join("lap", head_->ticket());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnauthorised);
  EXPECT_THAT(refused.error().cause, HasSubstr("which has joined"));
  EXPECT_TRUE(eventually([&] { return said().find("refused a machine") != std::string::npos; }));
}

TEST_F(JoinHeadTest, RefusesAWrongSecretAndAnExpiredTicket) {
  open(1, -1);
  Ticket wrong = head_->ticket();
  wrong.secret[0] = static_cast<char>(wrong.secret[0] + 1);
  EXPECT_THAT(join("box", wrong).error().cause, HasSubstr("secret"));
  EXPECT_THAT(join("box", head_->ticket()).error().cause, HasSubstr("expired"));
}

TEST_F(JoinHeadTest, IsNotTrustedWithoutTheKeyOfTheTicket) {
  open(1);
  Ticket other = head_->ticket();
  other.fingerprint = std::string(64, '0');
  const auto refused = join("box", other);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnauthorised);
  EXPECT_THAT(refused.error().what, HasSubstr("is not the head of this ticket"));
  EXPECT_THAT(said(), Not(HasSubstr("box")));
}

TEST_F(JoinHeadTest, NamesEachAddressThatDoesNotAnswer) {
  open(1);
  Ticket ticket = head_->ticket();
  head_.reset();
  const auto failed = join("box", ticket);
  EXPECT_EQ(failed.error().code, ErrorCode::kPeer);
  EXPECT_THAT(failed.error().cause, AllOf(HasSubstr(fmt::format("127.0.0.1 port {}", ticket.port)),
                                          HasSubstr("refused")));
}

TEST_F(JoinHeadTest, AdmitsAMachineAmongManySilentConnections) {
  open(1);
  std::vector<OwnedFd> silent;
  for (int i = 0; i < 300; ++i) {
    auto socket = connect_to("127.0.0.1", head_->ticket().port, 5);
    ASSERT_TRUE(socket.ok());
    silent.push_back(std::move(socket).value());
  }
  start_joining("box");
  EXPECT_EQ(start({"box", "has", "motley-stage"}).end().exit, JoinExit{});
}

Result<std::vector<OfferedFile>> files_of(const fs::path& texts) {
  Config config;
  config.data.path = texts;
  return needed_files(config, [](const std::string&) {});
}

// Readers of packages and of folders accept no symbolic links.
TEST_F(JoinHeadTest, PlacesRegularFilesAndRemovesThoseOfEarlierTransfers) {
  open(1);
  start_joining("box");
  fs::create_directories(folder_ / "data");
  std::ofstream(folder_ / "data" / "a.txt") << "a";
  std::ofstream(folder_ / "data" / "same.txt") << "a";
  std::ofstream(folder_ / "data" / "old.txt") << "old";
  const auto send = [&] {
    const auto files = files_of(folder_ / "data");
    ASSERT_TRUE(files.ok()) << describe(files.error());
    const auto sent = send_files(shell("box"), *files, [](std::uint64_t) {});
    ASSERT_TRUE(sent.ok()) << describe(sent.error());
  };
  send();
  const fs::path there = path_there(shell("box"), folder_ / "data");
  for (const char* name : {"a.txt", "same.txt", "old.txt"}) {
    EXPECT_EQ(fs::symlink_status(there / name).type(), fs::file_type::regular) << name;
  }
  fs::remove(folder_ / "data" / "old.txt");
  std::ofstream(folder_ / "data" / "a.txt") << "other";
  send();
  EXPECT_EQ(text_of(there / "a.txt"), "other");
  EXPECT_EQ(text_of(there / "same.txt"), "a");
  EXPECT_FALSE(fs::exists(there / "old.txt"));
}

TEST_F(JoinHeadTest, SendsFilesOnceAndPlacesThem) {
  open(1);
  start_joining("box");
  fs::create_directories(folder_ / "data" / "sub");
  std::ofstream(folder_ / "data" / "a.txt") << std::string(300'000, 'a');
  std::ofstream(folder_ / "data" / "sub" / "b.txt") << "b";
  std::ofstream(folder_ / "data" / "sub" / "empty");
  const auto files = files_of(folder_ / "data");
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 3U);
  const auto sent = send_files(shell("box"), *files, [](std::uint64_t) {});
  ASSERT_TRUE(sent.ok()) << describe(sent.error());
  EXPECT_EQ(*sent, 300'001U);
  for (const OfferedFile& file : *files) {
    EXPECT_EQ(text_of(path_there(shell("box"), file.path)), text_of(file.path)) << file.path;
  }
  const auto again = send_files(shell("box"), *files, [](std::uint64_t) {});
  ASSERT_TRUE(again.ok()) << describe(again.error());
  EXPECT_EQ(*again, 0U);
}

TEST_F(JoinHeadTest, ContinuesAFileThatWasCutOff) {
  open(1);
  start_joining("box");
  std::ofstream(folder_ / "a.txt") << std::string(200'000, 'a') << std::string(100'000, 'b');
  const auto files = files_of(folder_ / "a.txt");
  ASSERT_TRUE(files.ok());
  const fs::path objects = folder_ / "box" / ".cache/motley/join/objects";
  std::ofstream(objects / (files->front().sha256 + ".part")) << std::string(200'000, 'a');
  const auto sent = send_files(shell("box"), *files, [](std::uint64_t) {});
  ASSERT_TRUE(sent.ok()) << describe(sent.error());
  EXPECT_EQ(*sent, 100'000U);
  EXPECT_EQ(text_of(path_there(shell("box"), files->front().path)), text_of(folder_ / "a.txt"));
}

TEST_F(JoinHeadTest, DetectsAFileThatChangedMeanwhile) {
  open(1);
  start_joining("box");
  std::ofstream(folder_ / "a.txt") << "first";
  const auto files = files_of(folder_ / "a.txt");
  std::ofstream(folder_ / "a.txt") << "other";
  const auto sent = send_files(shell("box"), *files, [](std::uint64_t) {});
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, ErrorCode::kData);
  EXPECT_THAT(sent.error().remedy, HasSubstr("leave the files of the run as they are"));
  EXPECT_THAT(sent.error().cause, HasSubstr("arrived with another content"));
}

}  // namespace
}  // namespace motley

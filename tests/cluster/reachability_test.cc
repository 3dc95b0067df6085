#include "cluster/launch/reachability.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace motley {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kProgram = "/bin/sh";  // any executable file

Machine machine(const std::string& name, std::vector<std::string> shell) {
  Machine machine;
  machine.name = name;
  machine.shell = std::move(shell);
  return machine;
}

Error trouble_of(std::vector<Machine> machines, double answer_s = 20) {
  Cluster cluster;
  std::set<std::string> names;
  for (const Machine& each : machines) names.insert(each.name);
  cluster.machines = std::move(machines);
  const auto answer = check_reachable(cluster, names, kProgram, answer_s);
  EXPECT_FALSE(answer.ok());
  return answer.ok() ? Error{} : answer.error();
}

// A package here, and machines that see another folder at its path.
class PackageSeen : public testing::Test {
 protected:
  PackageSeen() {
    make_folder("here");
    std::filesystem::create_directories(folder_ / "less");
  }

  ~PackageSeen() override { std::filesystem::remove_all(folder_); }

  void make_folder(const std::string& name, const std::string& weights = "1234567") const {
    std::filesystem::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "package.json") << "abc";
    std::ofstream(folder_ / name / "weights.safetensors") << weights;
  }

  // A machine that sees `name` at the path of `here`.
  [[nodiscard]] Machine seeing(const std::string& name) const {
    constexpr const char* kExchange = "for word; do set -- \"$@\" \"$(echo \"$word\" | sed s#";
    const std::string shell = fmt::format("{}{}/#{}/#)\"; shift; done; exec \"$@\"", kExchange,
                                          (folder_ / "here").string(), (folder_ / name).string());
    return machine(name, {"sh", "-c", shell, "sh"});
  }

  [[nodiscard]] Result<void> check(std::vector<Machine> machines) const {
    Cluster cluster;
    std::set<std::string> names;
    for (const Machine& each : machines) names.insert(each.name);
    cluster.machines = std::move(machines);
    const FolderFingerprint package{
        folder_ / "here", "package.json",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "weights.safetensors",
        7};
    return check_package_seen(cluster, names, package, 20);
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("motley-seen-{}", ::getpid());
};

// No server listens there, so the connection is refused at once; the test also passes without ssh.
TEST(Reachability, NamesTheCommandThatMustWorkForEachMachineBehindSsh) {
  const Error error = trouble_of({machine("left", {"ssh", "-p", "1", "127.0.0.1"}),
                                  machine("right", {"ssh", "-p", "1", "127.0.0.2"})});
  EXPECT_THAT(error.remedy, HasSubstr("'ssh -p 1 127.0.0.1 true' and 'ssh -p 1 127.0.0.2 true'"));
}

TEST(Reachability, MachinesThatAnswerAreFine) {
  Cluster cluster;
  cluster.machines = {machine("here", {}), machine("there", {"env", "A=b"})};
  const auto answer = check_reachable(cluster, {"here", "there"}, kProgram);
  EXPECT_TRUE(answer.ok()) << describe(answer.error());
}

TEST(Reachability, NamesAllThatDoNotAnswerAtOnceAndSaysWhatTheySaid) {
  const Error error = trouble_of(
      {machine("fine", {"env"}), machine("off", {"sh", "-c", "echo gone >&2; exit 255"}),
       machine("missing", {"/no/such/shell"}), machine("killed", {"sh", "-c", "kill -9 $$"})});
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_THAT(error.what, HasSubstr("off, missing, killed"));
  EXPECT_THAT(error.what, Not(HasSubstr("fine")));
  EXPECT_THAT(error.cause, HasSubstr("off: its shell ended with status 255: gone"));
  EXPECT_THAT(error.cause, HasSubstr("/no/such/shell"));
  EXPECT_THAT(error.cause, HasSubstr("killed: its shell was killed by signal 9"));
  EXPECT_THAT(error.remedy, HasSubstr("motley doctor"));
}

TEST(Reachability, AsksAllAtTheSameTimeAndWaitsForNoneForLong) {
  const double start_s = now_s();
  std::vector<Machine> deaf;
  for (int i = 0; i < 40; ++i) {
    deaf.push_back(machine(fmt::format("m{}", i), {"sh", "-c", "exec sleep 1000"}));
  }
  const Error error = trouble_of(deaf, 0.5);
  EXPECT_THAT(error.cause, HasSubstr("m39: no answer within 0.5 s"));
  EXPECT_LT(now_s() - start_s, 15);  // sequentially it would take 20 s
}

TEST(Reachability, AProgramThatIsNotThereIsToldFromAMachineThatIsNot) {
  Machine without = machine("without", {"env"});
  without.motley_dir = "/no/motley";
  EXPECT_THAT(trouble_of({without}).cause,
              HasSubstr("without: no executable program /no/motley/sh there"));
}

// As with `exec fish` in .bashrc: the shell reads the end of its input and exits with status 0.
TEST(Reachability, AShellThatRunsAnotherInItsPlaceIsNoMachineThatAnswers) {
  EXPECT_THAT(trouble_of({machine("fish", {"sh", "-c", "exec cat", "sh"})}).cause,
              HasSubstr("fish: its login shell ended without running the command"));
}

// A background process of a start-up file keeps the connection open.
TEST(Reachability, AnAnswerEndsBeforeItsConnectionDoes) {
  Cluster cluster;
  cluster.machines = {machine("busy", {"sh", "-c", "sleep 1000 & exec \"$@\"", "sh"})};
  EXPECT_TRUE(check_reachable(cluster, {"busy"}, kProgram, 500).ok());
}

TEST(Reachability, OnlyTheNamedMachinesAreAsked) {
  Cluster cluster;
  cluster.machines = {machine("off", {"false"}), machine("fine", {"env"})};
  EXPECT_TRUE(check_reachable(cluster, {"fine"}, kProgram).ok());
}

TEST_F(PackageSeen, IsTheSameWhateverTheShellSaysBefore) {
  make_folder("copy");
  Machine greeting = seeing("copy");
  greeting.name = "greeting";
  greeting.shell[2] = "head -c 3000 /dev/zero | tr '\\0' x; printf \\a; " + greeting.shell[2];
  const auto seen = check({machine("here", {}), seeing("copy"), greeting});
  EXPECT_TRUE(seen.ok()) << describe(seen.error());
}

TEST_F(PackageSeen, IsToldFromNoneAndFromAnother) {
  make_folder("changed");
  std::ofstream(folder_ / "changed/package.json") << "abd";
  make_folder("short", "1234");
  make_folder("copy");
  const auto seen = check({seeing("copy"), seeing("less"), seeing("changed"), seeing("short")});
  ASSERT_FALSE(seen.ok());
  const Error& error = seen.error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.what,
              AllOf(HasSubstr((folder_ / "here").string()), HasSubstr("less, changed, short")));
  EXPECT_THAT(error.what, Not(HasSubstr("copy")));
  EXPECT_THAT(error.cause, HasSubstr("less: it is not there"));
  EXPECT_THAT(error.cause, HasSubstr("changed: another one is there"));
  EXPECT_THAT(error.cause, HasSubstr("short: another one is there"));
}

TEST_F(PackageSeen, IsCopiedByTheCommandThatIsTried) {
  const auto there = check({seeing("less")});
  ASSERT_FALSE(there.ok());
  const std::string remedy = there.error().remedy;
  const std::string packed = fmt::format("\ntar -cPf - {} | sh -c ", (folder_ / "here").string());
  EXPECT_THAT(remedy, HasSubstr(packed));
  EXPECT_THAT(remedy, ::testing::EndsWith(" tar -xPf -"));
}

TEST_F(PackageSeen, IsNotAskedOfMachinesThatDoNotAnswer) {
  const auto seen =
      check({machine("off", {"sh", "-c", "echo gone >&2; exit 255"}), seeing("less")});
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.error().code, ErrorCode::kPeer);
  EXPECT_THAT(seen.error().cause, HasSubstr("off: its shell ended with status 255: gone"));
}

}  // namespace
}  // namespace motley

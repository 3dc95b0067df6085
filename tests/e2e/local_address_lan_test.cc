// In a network of two machines, the machine that `motley` runs on is recognised by its address, so
// its workers need no remote shell. Skipped as the other tests of scripts/lan.
#include <fmt/format.h>

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/lan_machines.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class LocalAddressOnLan : public testing::Test {
 protected:
  void SetUp() override {
    if (!machines_.are_up()) GTEST_SKIP() << "needs root and a LAN of its own (scripts/lan)";
  }

  // m1 with these lines in its entry; m2 through scripts/lan, from either machine.
  [[nodiscard]] std::string cluster(const std::string& own_lines) const {
    return job_.folder().write("cluster.toml",
                               fmt::format("[[machine]]\nname = \"m1\"\n{}\n"
                                           "[[machine]]\nname = \"m2\"\naddress = \"10.77.0.2\"\n"
                                           "shell = [\"ip\", \"netns\", \"exec\", \"motley-m2\"]\n",
                                           own_lines));
  }

  // motley on the machine m1.
  [[nodiscard]] static Outcome on_m1(std::vector<std::string> words) {
    words.insert(words.begin(), {"netns", "exec", "motley-m1",
                                 (stage_program().parent_path() / "motley").string()});
    return motley(words, "/usr/sbin/ip");
  }

  [[nodiscard]] Outcome doctor(const std::string& own_lines) const {
    return on_m1({"doctor", "--cluster", cluster(own_lines), "--run", job_.folder().path().string(),
                  "--json"});
  }

  static std::string way_to_m1(const Outcome& outcome) {
    const Json report = Json::parse(outcome.out);
    for (const Json& finding : report.at("findings")) {
      if (finding.at("what") == "reached" && finding.at("where") == "m1")
        return finding.at("found");
    }
    return "";
  }

  LanMachines machines_{""};
  SmallJob job_;
};

TEST_F(LocalAddressOnLan, NeedsNoShellWhereMotleyRuns) {
  const Outcome found = doctor("address = \"10.77.0.1\"\n");
  ASSERT_EQ(found.status, 0) << found.out << found.err;
  EXPECT_EQ(way_to_m1(found), "here");
  const Outcome trained = on_m1(job_.train_words(
      "run", {"--cluster", cluster("address = \"10.77.0.1\"\n"), "--set", "train.steps=3", "--set",
              "train.warmup_steps=1", "--pin", "always m1", "--pin", "always m2"}));
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("m1 here, m2 by `ip netns exec motley-m2`"));
}

TEST_F(LocalAddressOnLan, MayBeTheHostName) {
  std::string name;
  std::istringstream(read_text("/proc/sys/kernel/hostname")) >> name;
  const Outcome found = doctor(fmt::format("address = \"{}\"\n", name));
  ASSERT_EQ(found.status, 0) << found.out << found.err;
  EXPECT_EQ(way_to_m1(found), "here");
  EXPECT_THAT(found.out, HasSubstr("10.77.0.1 on eth0")) << "not what /etc/hosts calls it";
}

TEST_F(LocalAddressOnLan, LosesToAShellThatIsGiven) {
  const Outcome found =
      doctor("address = \"10.77.0.1\"\nshell = [\"ip\", \"netns\", \"exec\", \"motley-m1\"]\n");
  ASSERT_EQ(found.status, 0) << found.out << found.err;
  EXPECT_EQ(way_to_m1(found), "by `ip netns exec motley-m1`");
}

// From the other machine the same address is remote.
TEST_F(LocalAddressOnLan, IsAnotherMachinesElsewhere) {
  const std::string file = cluster("address = \"10.77.0.1\"\n");
  const Outcome found =
      motley({"doctor", "--cluster", file, "--run", job_.folder().path().string(), "--json"});
  EXPECT_EQ(found.status, 4) << found.out << found.err;
  EXPECT_EQ(way_to_m1(found), "");
}

}  // namespace
}  // namespace motley::test

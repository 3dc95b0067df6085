// The machines of schedulers: lists of hosts, and what their environments describe.
#include "cli/init/allocation.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include "cli/init/host_list.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

Words expanded(const std::string& text) {
  const auto hosts = expand_host_list(text);
  return hosts.ok() ? *hosts : Words{hosts.error().cause};
}

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}

class Allocation : public testing::Test {
 protected:
  ~Allocation() override { fs::remove(file_); }

  // Writes the host file and returns its path.
  [[nodiscard]] std::string hosts(const std::string& text) const {
    std::ofstream(file_) << text;
    return file_;
  }

 private:
  std::string file_ =
      (fs::temp_directory_path() / ("motley-hosts-" + std::to_string(::getpid()))).string();
};

TEST(HostList, ExpandsNumbersInBrackets) {
  EXPECT_THAT(expanded("box"), ElementsAre("box"));
  EXPECT_THAT(expanded("gpu[01-03,7],head"),
              ElementsAre("gpu01", "gpu02", "gpu03", "gpu7", "head"));
  EXPECT_THAT(expanded("n[9-11].lab"), ElementsAre("n9.lab", "n10.lab", "n11.lab"));
  EXPECT_THAT(expanded("r[1-2]n[1,3]"), ElementsAre("r1n1", "r1n3", "r2n1", "r2n3"));
}

TEST(HostList, RefusesWhatIsNone) {
  for (const char* wrong : {"", ",", "a,,b", "n[1-", "n[]", "n[a-b]", "n[3-1]", "n[1--2]", "-box",
                            "a b", "n[1-2]]", "n[-1]", "n[1-99999999999]", "$(reboot)"}) {
    EXPECT_FALSE(expand_host_list(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(expand_host_list("n[0-4096]").ok());
  EXPECT_FALSE(expand_host_list("n[0-99][0-99]").ok());
  EXPECT_EQ(expanded("n[0-4095]").size(), kListedHostsMax);
}

RC_GTEST_PROP(HostList, IsBoundedForAnyText, (const std::vector<std::uint8_t>& choices)) {
  constexpr std::string_view kLetters = "n019-[],(x).: #\n";
  std::string text;
  for (const std::uint8_t choice : choices) text += kLetters[choice % kLetters.size()];
  if (const auto hosts = expand_host_list(text); hosts.ok()) {
    RC_ASSERT(!hosts->empty());
    RC_ASSERT(hosts->size() <= kListedHostsMax);
  }
  if (const auto counts = expand_counts(text); counts.ok()) {
    RC_ASSERT(counts->size() <= kListedHostsMax);
  }
  if (const auto lines = hosts_of_file(text); lines.ok()) {
    RC_ASSERT(lines->size() <= kListedHostsMax);
  }
}

TEST(HostList, RepeatsCounts) {
  EXPECT_THAT(*expand_counts("16(x2),8"), ElementsAre(16, 16, 8));
  for (const char* wrong : {"", "x", "16(x", "16(x2", "16(2)", "1,(x3)", "1(x9999999)"}) {
    EXPECT_FALSE(expand_counts(wrong).ok()) << wrong;
  }
}

TEST(HostList, TakesTheFirstWordOfEachLine) {
  EXPECT_THAT(
      *hosts_of_file("# two machines\nbox slots=4\n\n  desk:2 # fast\nbox slots=1\r\nfd00::1\n"),
      ElementsAre("box", "desk", "fd00::1"));
  EXPECT_THAT(*hosts_of_file("\n# none\n"), IsEmpty());
  EXPECT_FALSE(hosts_of_file("-oProxyCommand=reboot\n").ok());
  const auto with_user = hosts_of_file("box\nme@desk\n");
  ASSERT_FALSE(with_user.ok());
  EXPECT_EQ(with_user.error().what, "line 2 of the list of hosts names no host");
  EXPECT_THAT(with_user.error().remedy, testing::HasSubstr("leave the user out"));
}

TEST_F(Allocation, OfSlurmIsTheNodesOfItsJob) {
  const auto machines =
      allocated_machines("slurm", environment({{"SLURM_JOB_ID", "17"},
                                               {"SLURM_JOB_NODELIST", "n[1-2],big"},
                                               {"SLURM_JOB_CPUS_PER_NODE", "4(x2),16"},
                                               {"SLURM_MEM_PER_CPU", "2048"},
                                               {"SLURMD_NODENAME", "n1"}}));
  ASSERT_TRUE(machines.ok()) << machines.error().what;
  ASSERT_EQ(machines->size(), 3U);
  EXPECT_TRUE((*machines)[0].is_here);
  EXPECT_THAT((*machines)[0].shell, IsEmpty());
  EXPECT_EQ((*machines)[0].memory_gib, 8);
  EXPECT_EQ((*machines)[2].host, "big");
  EXPECT_EQ((*machines)[2].memory_gib, 32);
  EXPECT_THAT((*machines)[2].shell, Contains("--nodelist=big"));
  EXPECT_THAT((*machines)[2].shell, Contains("--jobid=17"));
}

TEST_F(Allocation, OfABatchSystemIsItsHostFile) {
  const std::string file = hosts("n1\nn1\nn2\n");
  for (const auto& [source, variable] : std::map<std::string, std::string>{
           {"pbs", "PBS_NODEFILE"}, {"lsf", "LSB_DJOB_HOSTFILE"}, {"sge", "PE_HOSTFILE"}}) {
    const auto machines = allocated_machines(source, environment({{variable, file}}));
    ASSERT_TRUE(machines.ok()) << machines.error().what;
    ASSERT_EQ(machines->size(), 2U);
    EXPECT_EQ((*machines)[1].host, "n2");
    EXPECT_THAT((*machines)[1].shell, IsEmpty());
  }
  EXPECT_EQ(allocated_machines(file, environment({}))->size(), 2U);
}

TEST_F(Allocation, NamesWhatIsMissing) {
  const auto error = [](const std::string& source) {
    const auto machines = allocated_machines(source, environment({}));
    return machines.ok() ? Error{} : machines.error();
  };
  EXPECT_EQ(error("slurm").code, ErrorCode::kUsage);
  EXPECT_THAT(error("slurm").cause, HasSubstr("SLURM_JOB_ID is not set"));
  EXPECT_THAT(error("pbs").cause, HasSubstr("PBS_NODEFILE is not set"));
  EXPECT_EQ(error("slrum").code, ErrorCode::kUsage);
  EXPECT_THAT(error("slrum").remedy, HasSubstr("slurm, pbs, lsf, sge"));
  EXPECT_EQ(error(hosts("# none\n")).code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace motley

// Tests on artificial control group trees, in the kernel's format.
#include "base/system/system_cores.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace motley {
namespace {

class ControlGroupCores : public testing::Test {
 protected:
  ControlGroupCores() {
    std::string name = (std::filesystem::temp_directory_path() / "motley-cores-XXXXXX").string();
    top_ = ::mkdtemp(name.data());
  }

  ~ControlGroupCores() override { std::filesystem::remove_all(top_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((top_ / path).parent_path());
    std::ofstream(top_ / path) << text;
  }

  double cores(const std::string& own_groups) const {
    write("self", own_groups);
    return control_group_cores(top_ / "self", top_);
  }

  std::filesystem::path top_;
};

constexpr double kAll = std::numeric_limits<double>::infinity();

TEST_F(ControlGroupCores, AreAllWithoutAQuota) {
  EXPECT_EQ(cores(""), kAll);
  write("job/cpu.max", "max 100000\n");
  EXPECT_EQ(cores("0::/job\n"), kAll);
  write("cpu/job/cpu.cfs_quota_us", "-1\n");
  write("cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores("4:cpu,cpuacct:/job\n"), kAll);
}

TEST_F(ControlGroupCores, AreQuotaOverPeriodOfTheTightestGroup) {
  write("outer/cpu.max", "150000 100000\n");
  write("outer/inner/cpu.max", "40000 20000\n");
  EXPECT_EQ(cores("0::/outer/inner\n"), 1.5);
}

TEST_F(ControlGroupCores, ReadVersion1) {
  write("cpu/job/cpu.cfs_quota_us", "10000\n");
  write("cpu/job/cpu.cfs_period_us", "20000\n");
  EXPECT_EQ(cores("9:name=systemd:/\n4:cpu,cpuacct:/job\n0::/\n"), 0.5);
}

TEST_F(ControlGroupCores, IgnoreAPeriodOfNothing) {
  write("job/cpu.max", "50000 0\n");
  EXPECT_EQ(cores("0::/job\n"), kAll);
}

TEST(UsableCores, AreSome) {
  EXPECT_GT(usable_cores(), 0);
}

class Topology : public ControlGroupCores {
 protected:
  void processor(int number, int package, int core) const {
    const std::string folder = "cpu" + std::to_string(number) + "/topology/";
    write(folder + "physical_package_id", std::to_string(package) + "\n");
    write(folder + "core_id", std::to_string(core) + "\n");
  }
};

TEST_F(Topology, CountsTheThreadsOfACoreOnce) {
  processor(0, 0, 0);
  processor(1, 0, 1);
  processor(2, 0, 0);
  processor(3, 1, 0);
  EXPECT_EQ(physical_cores(top_, {0, 1, 2, 3}), 3);
  EXPECT_EQ(physical_cores(top_, {0, 2}), 1);
  EXPECT_EQ(physical_cores(top_, {0, 1, 7}), 3) << "7 has no topology";
}

TEST(DefaultThreads, ShareTheCoresWithinTheQuota) {
  EXPECT_EQ(threads_of_one({.computing = 1}, false, 8, 16), 8);
  EXPECT_EQ(threads_of_one({.computing = 3}, false, 8, 16), 2);
  EXPECT_EQ(threads_of_one({.computing = 1}, false, 8, 2.5), 2);
  EXPECT_EQ(threads_of_one({.computing = 4}, false, 2, 2), 1);
  EXPECT_EQ(threads_of_one({.computing = 1}, false, 8, 0.25), 1);
}

// A process that serves a graphics card needs one core to submit its work, and no share of the
// computing cores.
TEST(DefaultThreads, LeaveACoreToEachProcessThatServesADevice) {
  EXPECT_EQ(threads_of_one({.computing = 1, .serving = 1}, false, 16, 16), 15);
  EXPECT_EQ(threads_of_one({.computing = 2, .serving = 2}, false, 8, 16), 3);
  EXPECT_EQ(threads_of_one({.computing = 1, .serving = 4}, false, 2, 2), 1);
  EXPECT_EQ(threads_of_one({.serving = 2}, true, 8, 16), 4);
  EXPECT_EQ(threads_of_one({.computing = 1, .serving = 1}, true, 16, 16), 1);
}

#ifdef __linux__
TEST(LeaveCoresToOthers, ConcernsTheCallingThreadAlone) {
  constexpr int kLast = 19;
  const int before = getpriority(PRIO_PROCESS, 0);
  int there = before;
  std::thread([&there] {
    yield_cores();
    there = getpriority(PRIO_PROCESS, 0);
  }).join();
  EXPECT_EQ(there, std::min(before + 10, kLast));
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
}
#endif

TEST(ProcessorName, IsPartOfWhatTellsModelsApart) {
  EXPECT_NE(processor_model().find(processor_name()), std::string::npos);
  EXPECT_FALSE(processor_name().starts_with(' '));
}

}  // namespace
}  // namespace motley

// Tests on artificial control group trees, in the kernel's format.
#include "base/system/control_group_memory.h"

#include <unistd.h>

#include <fstream>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace motley {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

class ControlGroupMemory : public testing::Test {
 protected:
  ControlGroupMemory() {
    std::string name = (std::filesystem::temp_directory_path() / "motley-groups-XXXXXX").string();
    top_ = ::mkdtemp(name.data());
  }

  ~ControlGroupMemory() override { std::filesystem::remove_all(top_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((top_ / path).parent_path());
    std::ofstream(top_ / path) << text;
  }

  std::int64_t left(const std::string& own_groups) const {
    write("self", own_groups);
    return control_group_memory_left(top_ / "self", top_);
  }

 private:
  std::filesystem::path top_;
};

TEST_F(ControlGroupMemory, IsWithoutLimitWhereThereAreNoGroups) {
  EXPECT_EQ(left(""), kUnlimited);
  EXPECT_EQ(left("0::/user/session\n"), kUnlimited);
  EXPECT_EQ(left("no groups at all"), kUnlimited);
}

TEST_F(ControlGroupMemory, IsLimitLessWhatIsUsedButNotDroppable) {
  write("job/memory.max", "1000\n");
  write("job/memory.current", "700\n");
  write("job/memory.stat", "anon 100\ninactive_file 200\n");
  EXPECT_EQ(left("0::/job\n"), 500);
}

TEST_F(ControlGroupMemory, TakesTheTightestGroupOnTheWayUp) {
  write("outer/memory.max", "400");
  write("outer/inner/memory.max", "max");
  EXPECT_EQ(left("0::/outer/inner\n"), 400);
  write("outer/inner/memory.max", "300");
  EXPECT_EQ(left("0::/outer/inner\n"), 300);
}

TEST_F(ControlGroupMemory, ReadsVersion1) {
  write("memory/job/memory.limit_in_bytes", "1000");
  write("memory/job/memory.usage_in_bytes", "600");
  write("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 50\n");
  EXPECT_EQ(left("9:name=systemd:/\n4:cpu,memory:/job\n0::/\n"), 450);
}

TEST_F(ControlGroupMemory, IsNeverNegative) {
  write("memory.max", "100");
  write("memory.current", "150");
  EXPECT_EQ(left("0::/\n"), 0);
}

TEST_F(ControlGroupMemory, SeesTheTopOfAContainerWhosePathIsTheHosts) {
  write("memory/memory.limit_in_bytes", "500");
  EXPECT_EQ(left("4:memory:/docker/0123\n"), 500);
}

}  // namespace
}  // namespace motley

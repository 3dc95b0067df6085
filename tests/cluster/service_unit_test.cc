// The unit by which systemd keeps a run going.
#include "cluster/supervisor/service_unit.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "cluster/supervisor/service_installation.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;

ServiceUnit unit_of(const fs::path& run_dir) {
  return {.run_dir = run_dir,
          .working_folder = "/",
          .environment = {{"MOTLEY_TRAIN_LR", "1e-3"}},
          .command = {"/bin/true", "train", "job.toml", "--auto-resume"}};
}

class ServiceUnitTest : public testing::Test {
 protected:
  ServiceUnitTest() {
    std::string name = (fs::temp_directory_path() / "motley-unit-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::setenv("XDG_CONFIG_HOME", name.c_str(), 1);
  }

  ~ServiceUnitTest() override {
    ::unsetenv("XDG_CONFIG_HOME");
    fs::remove_all(folder_);
  }

  fs::path folder_;
};

TEST_F(ServiceUnitTest, NamesTheRunAndRestartsItUnlessThatIsUseless) {
  const std::string text = unit_text(unit_of("/home/x/runs/gpt"));
  EXPECT_THAT(text, HasSubstr("Description=Motley: the run gpt\n"));
  EXPECT_THAT(text, HasSubstr("WorkingDirectory=/\n"));
  EXPECT_THAT(text, HasSubstr("Environment=\"MOTLEY_TRAIN_LR=1e-3\"\n"));
  EXPECT_THAT(text,
              HasSubstr("ExecStart=\"/bin/true\" \"train\" \"job.toml\" \"--auto-resume\"\n"));
  EXPECT_THAT(text, HasSubstr("Restart=on-failure\n"));
  EXPECT_THAT(text, HasSubstr("RestartPreventExitStatus=2 3 5 6 7 8 9\n"));
  EXPECT_THAT(text, HasSubstr("SuccessExitStatus=130 143\n"));
  EXPECT_THAT(text, HasSubstr("KillMode=process\n"));
  EXPECT_THAT(text, HasSubstr("WantedBy=default.target\n"));
  EXPECT_EQ(run_of_unit(text), "/home/x/runs/gpt");
  EXPECT_EQ(run_of_unit("[Unit]\n"), "");
}

TEST_F(ServiceUnitTest, QuotesWhatSystemdWouldChange) {
  ServiceUnit unit = unit_of("/runs/50% off");
  unit.command = {"/bin/a b", R"(a"b\c)", "$HOME", "100%"};
  const std::string text = unit_text(unit);
  EXPECT_THAT(text, HasSubstr(R"(ExecStart="/bin/a b" "a\"b\\c" "$$HOME" "100%%")"));
  EXPECT_THAT(text, HasSubstr("the run 50%% off\n"));
  EXPECT_EQ(run_of_unit(text), "/runs/50% off");
  EXPECT_EQ(unit_name("/runs/50% off"), "motley-50__off.service");
}

TEST_F(ServiceUnitTest, IsWrittenAgainForItsOwnRunOnly) {
  const auto path = write_unit(unit_of("/a/gpt"));
  ASSERT_TRUE(path.ok()) << path.error().what;
  EXPECT_EQ(*path, folder_ / "systemd/user/motley-gpt.service");
  EXPECT_TRUE(write_unit(unit_of("/a/gpt")).ok());
  const auto refused = write_unit(unit_of("/b/gpt"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_THAT(refused.error().cause, HasSubstr("/a/gpt"));
  ServiceUnit two_lines = unit_of("/a/gpt");
  two_lines.command.emplace_back("a\nb");
  EXPECT_FALSE(write_unit(two_lines).ok());
}

TEST_F(ServiceUnitTest, IsAcceptedBySystemd) {
  if (std::system("command -v systemd-analyze >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "systemd-analyze is not installed";
  }
  ServiceUnit unit = unit_of(folder_ / "50% off");
  unit.command.push_back(R"(--set=data.path=/a "b"\c$d%e)");
  const auto path = write_unit(unit);
  ASSERT_TRUE(path.ok());
  const std::string said = (folder_ / "said").string();
  const int status = std::system(("XDG_RUNTIME_DIR=" + folder_.string() +
                                  " systemd-analyze --user --man=no verify " + path->string() +
                                  " >" + said + " 2>&1")
                                     .c_str());
  std::ifstream file(said);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(WEXITSTATUS(status), 0) << text;
  EXPECT_THAT(text, Not(HasSubstr(path->filename().string()))) << "no remark";
}

}  // namespace
}  // namespace motley

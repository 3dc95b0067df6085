// `motley plan` and `motley simulate` as pictures, for the example of docs/planning.md.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/files.h"
#include "cli/command.h"
#include "tests/figures/markup.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PlanPictures : public testing::Test {
 protected:
  PlanPictures() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("motley-pictures-") + info->name());
    std::filesystem::create_directories(folder_);
  }

  ~PlanPictures() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  [[nodiscard]] std::string read(const std::string& name) const {
    const auto text = read_file(path(name));
    return text.ok() ? *text : describe(text.error());
  }

  static Result<void> run(const Command& command, std::vector<std::string> words) {
    const std::string home = MOTLEY_SOURCE_DIR "/docs/examples/home/";
    words.insert(words.end(),
                 {"--cluster", home + "cluster.toml", "--profile", home + "profile.json", "--set",
                  "model.layers=36", "--set", "model.width=1280", "--set", "model.heads=20",
                  "--set", "train.global_batch=16"});
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto arguments = parse_arguments(command.spec, words);
    const Result<void> done = arguments.ok() ? command.run(*arguments) : arguments.error();
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    return done;
  }

  static Result<void> plan(std::vector<std::string> words) {
    words.insert(words.begin(), kConfig);
    return run(plan_command(), std::move(words));
  }

  static constexpr const char* kConfig = MOTLEY_SOURCE_DIR "/configs/gpt2-124m.toml";
  std::filesystem::path folder_;
};

TEST_F(PlanPictures, ArePlansAndStepsInTheSameBytesEachTime) {
  ASSERT_TRUE(plan({"--svg", path("a.svg"), "-o", path("plan.json")}).ok());
  ASSERT_TRUE(plan({"--svg", path("b.svg")}).ok());
  EXPECT_EQ(read("a.svg"), read("b.svg"));
  EXPECT_TRUE(is_well_formed(read("a.svg")));
  EXPECT_THAT(read("a.svg"), AllOf(HasSubstr("desktop"), HasSubstr("Gain of each machine"),
                                   HasSubstr("Mbit/s"), HasSubstr("as simulated")));
  ASSERT_TRUE(
      run(simulate_command(), {path("plan.json"), "--config", kConfig, "--svg", path("step.svg")})
          .ok());
  EXPECT_THAT(read("step.svg"), AllOf(HasSubstr("class=\"forward\""), HasSubstr("desktop")));
}

TEST_F(PlanPictures, ArePagesBesideAnotherPlan) {
  ASSERT_TRUE(plan({"--pin", "never laptop", "-o", path("other.json")}).ok());
  const auto drawn = plan({"--html", path("plan.html"), "--compare", path("other.json")});
  ASSERT_TRUE(drawn.ok()) << describe(drawn.error());
  EXPECT_TRUE(is_well_formed(read("plan.html")));
  EXPECT_THAT(read("plan.html"),
              AllOf(HasSubstr("Beside "), HasSubstr("not used"), HasSubstr("Quality of the plan"),
                    Not(HasSubstr("<script"))));
}

TEST_F(PlanPictures, AreRefusedWhereTheyCannotBe) {
  const auto alone = plan({"--compare", path("plan.json")});
  ASSERT_FALSE(alone.ok());
  EXPECT_EQ(alone.error().code, ErrorCode::kUsage);
  const auto nowhere = plan({"--svg", "/no/folder/plan.svg"});
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().what, HasSubstr("/no/folder"));
  const auto other = plan({"--advise", "--svg", path("a.svg")});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace motley

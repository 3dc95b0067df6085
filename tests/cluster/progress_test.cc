#include "cluster/run_record/progress.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

// A file whose text can be read back.
class Screen {
 public:
  Screen() : file_(std::tmpfile()) {}

  ~Screen() { std::fclose(file_); }

  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] std::FILE* file() { return file_; }

  [[nodiscard]] std::string text() const {
    std::string all(1 << 16, ' ');
    const ssize_t bytes = ::pread(::fileno(file_), all.data(), all.size(), 0);
    all.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return all;
  }

  [[nodiscard]] long count(char wanted) const {
    const std::string all = text();
    return std::count(all.begin(), all.end(), wanted);
  }

 private:
  std::FILE* file_;
};

constexpr ProgressStyle kPlain{};
constexpr ProgressStyle kLive{.live = true};

StepMetrics step(std::int64_t number) {
  return {.step = number,
          .outcome = {.loss = 2.3144, .tokens = 506},
          .step_s = 0.41,
          .wait_s = {0.0656, 0}};
}

TEST(Progress, SaysVirtualWhereALossWouldMeanNothing) {
  Screen screen;
  Progress progress(screen.file(), kPlain, 119, 1000);
  StepMetrics metrics = step(120);
  metrics.is_computed = false;
  progress.show(metrics, 0);
  EXPECT_THAT(screen.text(), HasSubstr("120/1000  virtual  1,234 tok/s"));
}

TEST(Progress, SaysWhatPeopleWantToKnow) {
  Screen screen;
  Progress progress(screen.file(), kPlain, 119, 1000);
  progress.show(step(120), 0);
  EXPECT_EQ(screen.text(),
            "step 120/1000  loss 2.314  1,234 tok/s  0.41 s/step  wait 8 %  ETA 0:06:01\n");
}

// A sample of images may have one loss term per pixel.
TEST(Progress, CountsSamplesWhereThoseAreTheUnit) {
  Screen screen;
  Progress progress(screen.file(), {.rate_unit = "samples/s", .samples_a_step = 32}, 0, 1000);
  progress.show(step(1), 10);
  EXPECT_THAT(screen.text(), HasSubstr("  78.0 samples/s  "));
}

TEST(Progress, TellsTheHeldOutLossWhenItIsMeasured) {
  StepMetrics measured = step(50);
  measured.eval_loss = 2.4006;
  Screen plain;
  Progress lines(plain.file(), kPlain, 0, 1000);
  lines.show(step(1), 0);
  lines.show(measured, 0.1);
  lines.show(step(51), 6);
  EXPECT_THAT(plain.text(), HasSubstr("step 50/1000  loss 2.314  held-out 2.401  1,234 tok/s"));
  EXPECT_THAT(plain.text(), HasSubstr("step 51/1000  loss 2.314  1,234 tok/s"));
  measured.eval_accuracy = 0.98765;
  lines.show(measured, 7);
  EXPECT_THAT(plain.text(), HasSubstr("held-out 2.401, 98.77 % correct  1,234 tok/s"));
  measured.eval_top5_accuracy = 0.99;
  measured.eval_perplexity = 11.03;
  lines.show(measured, 8);
  EXPECT_THAT(plain.text(), HasSubstr("held-out 2.401 (perplexity 11.03), 98.77 % correct, "
                                      "99.00 % in the top 5  1,234 tok/s"));
  Screen live;
  Progress line(live.file(), kLive, 0, 1000);
  line.show(measured, 0);
  line.show(step(51), 1);
  EXPECT_THAT(live.text(), HasSubstr("step 51/1000  loss 2.314  held-out 2.401"));
}

TEST(Progress, IsMuteWhereItIsAskedTo) {
  Screen screen;
  Progress progress(screen.file(), {.live = true, .mute = true}, 0, 1);
  progress.show(step(1), 0);
  progress.finish();
  EXPECT_EQ(screen.text(), "");
}

TEST(Progress, PrintsPlainLinesOnlyEveryFewSecondsPlusFirstAndLast) {
  Screen screen;
  Progress progress(screen.file(), kPlain, 0, 100);
  for (int i = 1; i <= 100; ++i) progress.show(step(i), 0.1 * i);
  EXPECT_EQ(screen.count('\n'), 3);
  EXPECT_THAT(screen.text(), HasSubstr("step 1/100"));
  EXPECT_THAT(screen.text(), HasSubstr("step 100/100"));
}

TEST(Progress, RedrawsTheLiveLineAtMostFiveTimesASecond) {
  Screen screen;
  Progress progress(screen.file(), kLive, 0, 1000);
  for (int i = 1; i <= 100; ++i) progress.show(step(i), 0.01 * i);
  EXPECT_LE(screen.count('\r'), 6);
  EXPECT_GE(screen.count('\r'), 4);
  EXPECT_EQ(screen.count('\n'), 0);
}

TEST(Progress, GetsOutOfTheWayOfOtherLines) {
  Screen screen;
  Progress progress(screen.file(), kLive, 0, 1000);
  progress.show(step(1), 0);
  progress.clear();
  EXPECT_TRUE(screen.text().ends_with("\r\x1b[K"));
  progress.show(step(2), 0.01);
  EXPECT_THAT(screen.text(), HasSubstr("step 2/1000"));
}

TEST(Progress, LeavesTheLastLineStanding) {
  Screen screen;
  Progress progress(screen.file(), kLive, 0, 1);
  progress.show(step(1), 0);
  progress.finish();
  progress.clear();
  EXPECT_TRUE(screen.text().ends_with("\n"));
}

TEST(Progress, EstimatesFromTheTimeBetweenSteps) {
  Screen screen;
  Progress progress(screen.file(), kPlain, 0, 3700);
  for (int i = 1; i <= 100; ++i) progress.show(step(i), 2.0 * i);
  EXPECT_THAT(screen.text(), HasSubstr("ETA 2:00:"));
}

TEST(Progress, MarksASkippedStep) {
  Screen screen;
  StepMetrics skipped = step(1);
  skipped.outcome.skipped = true;
  Progress(screen.file(), kPlain, 0, 10).show(skipped, 0);
  EXPECT_THAT(screen.text(), HasSubstr("(skipped)"));
}

TEST(ProgressStyle, IsPlainWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(progress_style(file, "xterm", nullptr).live);
  std::fclose(file);
}

TEST(ProgressStyle, UsesColourOnlyWhenAsked) {
  Screen screen;
  Progress(screen.file(), kLive, 0, 10).show(step(1), 0);
  EXPECT_THAT(screen.text(), Not(HasSubstr("\x1b[1m")));
  Progress(screen.file(), {.live = true, .colour = true}, 0, 10).show(step(1), 0);
  EXPECT_THAT(screen.text(), HasSubstr("\x1b[1m"));
}

}  // namespace
}  // namespace motley

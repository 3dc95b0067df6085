#include "base/process/progress_line.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/system/owned_fd.h"

namespace motley {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr const char* kErased = "\r\x1b[K";

class WorkLineTest : public testing::Test {
 protected:
  WorkLineTest() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    screen_ = OwnedFd(ends[0]);
    terminal_ = ::fdopen(ends[1], "w");
  }

  ~WorkLineTest() override {
    if (terminal_ != nullptr) std::fclose(terminal_);
  }

  // The output until `text` appears, or for 30 s.
  std::string drawn_until(const std::string& text) {
    std::string all;
    const Deadline deadline = Deadline::after_s(30);
    while (all.find(text) == std::string::npos && !deadline.passed()) {
      pollfd readable{screen_.get(), POLLIN, 0};
      if (::poll(&readable, 1, 100) == 1) all += piece();
    }
    return all;
  }

  // The remaining output. REQUIRES: no ProgressLine draws any more.
  std::string drawn() {
    std::fclose(terminal_);
    terminal_ = nullptr;
    std::string all;
    for (std::string next = piece(); !next.empty(); next = piece()) all += next;
    return all;
  }

  std::FILE* terminal_ = nullptr;

 private:
  [[nodiscard]] std::string piece() const {
    char block[4096];
    const ssize_t got = ::read(screen_.get(), block, sizeof block);
    return got > 0 ? std::string(block, static_cast<std::size_t>(got)) : std::string();
  }

  OwnedFd screen_;
};

TEST_F(WorkLineTest, SaysWhatIsDoneAndLeavesNothing) {
  std::optional<ProgressLine> line(std::in_place, "planning", terminal_);
  EXPECT_THAT(drawn_until("planning, "), HasSubstr(kErased));
  line->say("planning: a step of 0.4 s so far");
  EXPECT_THAT(drawn_until("0.4 s so far, "), HasSubstr("0.4 s so far, "));
  line.reset();
  EXPECT_THAT(drawn(), EndsWith(kErased));
}

TEST_F(WorkLineTest, GoesOffTheScreenForWhatIsPrinted) {
  std::optional<ProgressLine> line(std::in_place, "measuring", terminal_);
  drawn_until("measuring, ");
  line->log_output()("a warning\n");
  EXPECT_THAT(drawn_until(kErased), HasSubstr(kErased));
  drawn_until("measuring, ");  // and is drawn again
  line->clear();
  line.reset();
  EXPECT_THAT(drawn(), EndsWith(kErased));
}

TEST_F(WorkLineTest, AsksForWhatItFollowsAtEachDrawing) {
  std::atomic<int> done = 1;
  std::optional<ProgressLine> line(std::in_place, "", terminal_);
  line->follow([&] { return "read " + std::to_string(done.load()) + " of 9"; });
  drawn_until("read 1 of 9, ");
  done = 5;
  EXPECT_THAT(drawn_until("read 5 of 9, "), HasSubstr("read 5 of 9, "));
  line->clear();
  line.reset();
  EXPECT_THAT(drawn(), EndsWith(kErased));
}

TEST_F(WorkLineTest, DrawsNothingWhileThereIsNothingToSay) {
  std::optional<ProgressLine> line(std::in_place, "", terminal_);
  line->say("reading");
  drawn_until("reading, ");
  line->clear();
  line.reset();
  EXPECT_THAT(drawn(), EndsWith(kErased));
}

TEST(ProgressLine, IsNothingWithoutATerminal) {
  testing::internal::CaptureStderr();
  {
    ProgressLine line("planning", nullptr);
    line.say("planning on");
    line.log_output()("a warning\n");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a warning\n");
}

}  // namespace
}  // namespace motley

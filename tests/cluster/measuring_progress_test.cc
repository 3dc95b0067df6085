#include "cluster/diagnose/measuring_progress.h"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;

class Measuring : public testing::Test {
 protected:
  ~Measuring() override { std::fclose(terminal_); }

  [[nodiscard]] MeasuringProgress plain(std::vector<std::string> devices) {
    return {std::move(devices), [this](const std::string& line) { lines_.push_back(line); },
            nullptr};
  }

  // The output so far.
  std::string drawn() {
    std::string all(static_cast<std::size_t>(std::ftell(terminal_)), '\0');
    std::rewind(terminal_);
    all.resize(std::fread(all.data(), 1, all.size(), terminal_));
    return all;
  }

  std::FILE* terminal_ = std::tmpfile();
  std::vector<std::string> lines_;
};

TEST_F(Measuring, TellsOfTheDeviceThatTakesLongest) {
  MeasuringProgress progress = plain({"m1 (cpu)", "m2 (cpu)"});
  progress.show(0, {"gpt2.attn(8) at 1 sample", 0.9, 3}, 0);
  progress.show(1, {"gpt2.mlp(8) at 4 samples", 0.45, 24.6}, 11);
  EXPECT_THAT(lines_, ElementsAre("measuring 2 devices: m2 (cpu) at 45 %, gpt2.mlp(8) at 4 "
                                  "samples; about 25 s left"));
}

TEST_F(Measuring, PrintsALineEveryTenSecondsAndNoneForWhatIsSoonOver) {
  MeasuringProgress progress = plain({"m1 (cpu)"});
  for (int second = 0; second <= 25; ++second) progress.show(0, {"it", 0.1, 9}, 100 + second);
  const std::string line = "measuring m1 (cpu) at 10 %, it; about 9 s left";
  EXPECT_THAT(lines_, ElementsAre(line, line));
}

TEST_F(Measuring, RedrawsOneLineOfATerminal) {
  MeasuringProgress progress({"m1 (cpu)"}, {}, terminal_);
  progress.show(0, {"it", 0.1, 9}, 0);
  progress.show(0, {"it", 0.2, 8}, 1);
  progress.clear();
  const std::string all = drawn();
  EXPECT_NE(all.find("at 20 %"), std::string::npos) << all;
  EXPECT_EQ(all.find('\n'), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with("\r\x1b[K")) << all;
}

}  // namespace
}  // namespace motley

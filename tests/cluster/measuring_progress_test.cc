#include "cluster/examine/measuring_progress.h"

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

namespace motley {
namespace {

class Measuring : public testing::Test {
 protected:
  ~Measuring() override { std::fclose(out_); }

  // What was printed so far.
  std::string text() {
    std::string all(static_cast<std::size_t>(std::ftell(out_)), '\0');
    std::rewind(out_);
    all.resize(std::fread(all.data(), 1, all.size(), out_));
    return all;
  }

  std::FILE* out_ = std::tmpfile();
};

TEST_F(Measuring, TellsOfTheDeviceThatTakesLongest) {
  MeasuringProgress progress({"m1 (cpu)", "m2 (cpu)"}, out_, /*live=*/false);
  progress.show(0, {"gpt2.attn(8) at 1 sample", 0.9, 3}, 0);
  progress.show(1, {"gpt2.mlp(8) at 4 samples", 0.45, 24.6}, 11);
  EXPECT_EQ(text(),
            "measuring 2 devices: m2 (cpu) at 45 %, gpt2.mlp(8) at 4 samples; about 25 s left\n");
}

TEST_F(Measuring, PrintsALineEveryTenSecondsAndNoneForWhatIsSoonOver) {
  MeasuringProgress progress({"m1 (cpu)"}, out_, /*live=*/false);
  for (int second = 0; second <= 25; ++second) progress.show(0, {"it", 0.1, 9}, 100 + second);
  EXPECT_EQ(text(),
            "measuring m1 (cpu) at 10 %, it; about 9 s left\n"
            "measuring m1 (cpu) at 10 %, it; about 9 s left\n");
}

TEST_F(Measuring, RedrawsOneLineOfATerminal) {
  MeasuringProgress progress({"m1 (cpu)"}, out_, /*live=*/true);
  progress.show(0, {"it", 0.1, 9}, 0);
  progress.show(0, {"it", 0.2, 8}, 1);
  progress.clear();
  const std::string all = text();
  EXPECT_NE(all.find("at 20 %"), std::string::npos) << all;
  EXPECT_EQ(all.find('\n'), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with("\r\x1b[K")) << all;
}

}  // namespace
}  // namespace motley

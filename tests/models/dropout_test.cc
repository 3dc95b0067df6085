#include "models/layers/dropout.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck.h>

#include "base/philox.h"

namespace motley {
namespace {

constexpr MicroContext kMicro{.seed = 11, .step = 3, .micro = 2};

std::vector<float> mask(const DropoutStream& stream, std::size_t count, std::int64_t tile = 0) {
  std::vector<float> values(count, 1.0F);
  stream.apply(values.data(), values.data(), static_cast<std::int64_t>(count), tile);
  return values;
}

DropoutStream stream_of(const MicroContext& micro,
                        int layer = 4,
                        DropoutSite site = DropoutSite::kOutput,
                        double p = 0.25) {
  return {p, micro, layer, site};
}

TEST(Dropout, KeepsTheRightShareAndTheMean) {
  const std::vector<float> values = mask(stream_of(kMicro), 1 << 20);
  const auto dropped = std::count(values.begin(), values.end(), 0.0F);
  EXPECT_NEAR(static_cast<double>(dropped) / (1 << 20), 0.25, 0.002);  // 5 standard deviations
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 1.0F / 0.75F);
}

TEST(Dropout, IsAFunctionOfItsPlace) {
  const std::vector<float> base = mask(stream_of(kMicro), 640);
  EXPECT_EQ(mask(stream_of(kMicro), 640), base);
  EXPECT_NE(mask(stream_of({.seed = 12, .step = 3, .micro = 2}), 640), base);
  EXPECT_NE(mask(stream_of({.seed = 11, .step = 4, .micro = 2}), 640), base);
  EXPECT_NE(mask(stream_of({.seed = 11, .step = 3, .micro = 1}), 640), base);
  EXPECT_NE(mask(stream_of(kMicro, 5), 640), base);
  EXPECT_NE(mask(stream_of(kMicro, 4, DropoutSite::kProbabilities), 640), base);
}

TEST(Dropout, DoesNotDependOnHowTheElementsAreSplit) {
  EXPECT_TRUE(rc::check([]() {
    const auto count = *rc::gen::inRange<std::size_t>(1, 700);
    const auto tile = *rc::gen::inRange<std::int64_t>(0, 10);
    const std::vector<float> all = mask(stream_of(kMicro), 2000);
    const std::vector<float> part = mask(stream_of(kMicro), count, tile);
    RC_ASSERT(std::equal(part.begin(), part.end(), all.begin() + tile * DropoutStream::kTile));
  }));
}

// The documented order of elements, from the one-block generator.
TEST(Dropout, FollowsPhilox) {
  const std::vector<float> values = mask(stream_of(kMicro), 640);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const std::uint32_t block = i / 64 * 16 + i % 16;
    const auto draw = philox4x32(11 ^ 0x64726F706F757421, {block, 3, 2, 4 << 8});
    EXPECT_EQ(values[i] != 0.0F, draw[i % 64 / 16] >= 0x40000000) << i;
  }
}

}  // namespace
}  // namespace motley

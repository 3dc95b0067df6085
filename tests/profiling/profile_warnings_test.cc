#include "profiling/profile_warnings.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LayerSample sample(int samples, double forward_s, double forward_spread_s) {
  return {.micro_batch = samples,
          .forward_s = forward_s,
          .backward_s = 2 * forward_s,
          .forward_spread_s = forward_spread_s};
}

DeviceProfile with_layer(std::vector<LayerSample> samples) {
  DeviceProfile device;
  device.layers["attn"] = std::move(samples);
  return device;
}

TEST(NoiseWarnings, NameTheWorstSizeOfAKind) {
  const auto device = with_layer({sample(1, 0.010, 0.0026), sample(4, 0.040, 0.0128)});
  EXPECT_THAT(noise_warnings(device),
              ElementsAre("noisy: the spread of forward of attn at 4 samples is 32 %"));
}

TEST(NoiseWarnings, AreSilentUpToAQuarter) {
  EXPECT_THAT(noise_warnings(with_layer({sample(1, 0.010, 0.0025)})), IsEmpty());
}

TEST(NoiseWarnings, LeaveOutAKindTooQuickToMatter) {
  DeviceProfile device = with_layer({sample(1, 0.010, 0)});
  device.layers["embed"] = {sample(1, 0.0001, 0.00005)};
  EXPECT_THAT(noise_warnings(device), IsEmpty());
}

TEST(DriftWarning, SaysBothTimesWhenTheyDiffer) {
  EXPECT_THAT(drift_warning(sample(1, 0.001, 0), sample(1, 0.0013, 0)),
              HasSubstr("3.000 ms, then 3.900 ms"));
  EXPECT_THAT(drift_warning(sample(1, 0.0013, 0), sample(1, 0.001, 0)),
              HasSubstr("3.900 ms, then 3.000 ms"));
  EXPECT_EQ(drift_warning(sample(1, 0.001, 0), sample(1, 0.00115, 0)), "");
}

}  // namespace
}  // namespace motley

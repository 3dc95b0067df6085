#include "profiling/sizes_that_fit.h"

#include <gtest/gtest.h>

#include "profiling/cache_eviction.h"

namespace motley {
namespace {

// 12 bytes per sample.
LayerSample sample_of(int samples) {
  LayerSample sample;
  sample.micro_batch = samples;
  sample.saved_bytes = 10 * samples;
  sample.workspace_bytes = 2 * samples;
  return sample;
}

TEST(SizesWithRoom, TheFirstIsAlwaysMeasured) {
  EXPECT_TRUE(fits_memory({}, 1, 0));
}

TEST(SizesWithRoom, ALargerOneMayTakeHalfOfWhatIsFreeBesideTheCachesFilling) {
  const auto free_for = [](std::int64_t tensor_bytes) {
    return CacheEviction::kBytesMax + 2 * tensor_bytes;
  };
  EXPECT_TRUE(fits_memory({sample_of(1)}, 16, free_for(12 * 16)));
  EXPECT_FALSE(fits_memory({sample_of(1)}, 16, free_for(12 * 16) - 1));
  EXPECT_TRUE(fits_memory({sample_of(1), sample_of(2)}, 32, free_for(12 * 32)));
  EXPECT_FALSE(fits_memory({sample_of(1), sample_of(2)}, 32, free_for(12 * 32) - 1));
}

}  // namespace
}  // namespace motley

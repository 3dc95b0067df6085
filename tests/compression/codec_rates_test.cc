#include "compression/feedback/codec_rates.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(CodecRates, AreOfEverythingAChainHas) {
  const auto rates = measure_codec_rates("topk(0.01)|int8", 100'000, 30'000, 1);
  ASSERT_TRUE(rates.ok());
  EXPECT_EQ(rates->chain, "topk(0.01)|int8");
  EXPECT_NEAR(rates->wire_bytes_per_value, 0.022, 0.006);
  for (const double rate :
       {rates->copy_bytes_per_s, rates->sum_bytes_per_s, rates->encode_bytes_per_s,
        rates->feedback_bytes_per_s, rates->momentum_bytes_per_s, rates->decode_bytes_per_s,
        rates->decode_add_bytes_per_s}) {
    EXPECT_GT(rate, 0);
  }
}

TEST(CodecRates, HaveNoMomentumWithoutTopk) {
  const auto rates = measure_codec_rates("fp16", 1000, 1000, 1);
  ASSERT_TRUE(rates.ok());
  EXPECT_EQ(rates->wire_bytes_per_value, 2);
  EXPECT_EQ(rates->momentum_bytes_per_s, 0);
}

TEST(CodecRates, RefuseWhatIsNoChain) {
  EXPECT_EQ(measure_codec_rates("half", 1000, 1000, 1).error().code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace motley

#include "profiling/codec_bench.h"

#include <gmock/gmock.h>

#include "tests/support/transport_kind.h"

namespace motley {
namespace {

// A kind of support/transport_kind.h.
class WireCostOver : public testing::TestWithParam<std::string> {};

TEST_P(WireCostOver, CoversNoneAndEveryChainAskedFor) {
  const auto cost =
      measure_wire_cost({"fp16", "none", "bf16|zstd(1)"}, options_for(GetParam(), Rank{0}, 2));
  ASSERT_TRUE(cost.ok()) << describe(cost.error());
  ASSERT_EQ(cost->codecs.size(), 3U);
  EXPECT_EQ(cost->codecs.at("none").bytes_per_float, 4);
  EXPECT_EQ(cost->codecs.at("fp16").bytes_per_float, 2);
  EXPECT_LT(cost->codecs.at("bf16|zstd(1)").bytes_per_float, 2);
  EXPECT_GT(cost->message_s, 0);
  EXPECT_GT(cost->shared_s_per_float, 0);
  for (const auto& [name, codec] : cost->codecs) {
    EXPECT_GT(codec.encode_s_per_float, 0) << name;
    EXPECT_GT(codec.decode_s_per_float, 0) << name;
  }
}

TEST(ChainsToMeasure, AreTheFormatsAndThoseOfTheConfiguration) {
  CompressionConfig compression;
  compression.activations = "auto";
  compression.gradients = "topk(0.1)";
  EXPECT_THAT(chains_to_measure(compression, false),
              testing::ElementsAre("fp16", "bf16", "int8", "int4", "topk(0.1)"));
  EXPECT_THAT(chains_to_measure(compression, true),
              testing::ElementsAre("fp16", "bf16", "int8", "int4", "fp16|zstd(1)", "bf16|zstd(1)",
                                   "int8|zstd(1)", "int4|zstd(1)", "topk(0.1)"));
}

std::vector<std::string> kinds() {
  std::vector<std::string> kinds = network_transport_kinds();
  kinds.emplace_back("auto");
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(EveryTransport, WireCostOver, testing::ValuesIn(kinds()));

TEST(WireCost, RefusesWhatIsNoCodec) {
  const auto cost = measure_wire_cost({"gzip"}, {});
  ASSERT_FALSE(cost.ok());
  EXPECT_EQ(cost.error().code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace motley

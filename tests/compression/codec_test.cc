#include "compression/codec/codec.h"

#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <rapidcheck.h>

#include "compression/codec_chain.h"
#include "compression/facts/codec_facts.h"
#include "compression/make_codec.h"

namespace motley {
namespace {

using testing::HasSubstr;

std::unique_ptr<const Codec> codec_of(const std::string& chain) {
  auto codec = make_codec(chain);
  EXPECT_TRUE(codec.ok()) << chain;
  return std::move(codec).value();
}

std::vector<std::byte> encoded(const Codec& codec, const std::vector<float>& values) {
  std::vector<std::byte> wire(codec.bytes_max(values.size()));
  wire.resize(codec.encode(values, wire));
  return wire;
}

Result<std::vector<float>> decoded(const Codec& codec,
                                   const std::vector<std::byte>& wire,
                                   std::size_t count) {
  std::vector<float> values(count);
  if (auto done = codec.decode(wire, values); !done.ok()) return done.error();
  return values;
}

std::vector<std::byte> zstd_frame(const std::vector<std::byte>& content) {
  std::vector<std::byte> wire(ZSTD_compressBound(content.size()));
  wire.resize(ZSTD_compress(wire.data(), wire.size(), content.data(), content.size(), 1));
  return wire;
}

// 0.5, 1.5, …: exact in every format that encodes each value independently.
std::vector<float> exact_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 32) + 0.5F;
  return values;
}

// Each format alone, compressed, and in topk if that may store its values so.
std::vector<std::string> chains_of_formats() {
  std::vector<std::string> chains;
  for (const CodecFacts& each : codecs()) {
    if (each.place != ChainPlace::kFormat) continue;
    chains.emplace_back(each.name);
    if (each.kind == CodecKind::kNone) continue;
    chains.push_back(std::string(each.name) + "|zstd(1)");
    if (each.topk_refusal == nullptr) chains.push_back(std::string("topk(0.1)|") + each.name);
  }
  return chains;
}

class EveryChain : public testing::TestWithParam<std::string> {};

TEST_P(EveryChain, NamesItself) {
  EXPECT_EQ(codec_of(GetParam())->name(), GetParam());
}

// Zeros compress best.
TEST_P(EveryChain, KnowsWhetherItsSizeDependsOnTheValues) {
  const auto codec = codec_of(GetParam());
  constexpr std::size_t kCount = 4096;
  const bool shrinks =
      encoded(*codec, std::vector<float>(kCount)).size() < codec->bytes_max(kCount);
  EXPECT_NE(codec->has_fixed_size(), shrinks);
  if (!codec->has_fixed_size()) return;
  for (const std::size_t count : {0U, 1U, 127U, 4096U, 10'001U}) {
    EXPECT_EQ(encoded(*codec, exact_values(count)).size(), codec->bytes_max(count)) << count;
  }
}

TEST_P(EveryChain, RefusesEveryTruncation) {
  const auto codec = codec_of(GetParam());
  auto wire = encoded(*codec, exact_values(50));
  while (!wire.empty()) {
    wire.pop_back();
    const auto back = decoded(*codec, wire, 50);
    ASSERT_FALSE(back.ok());
    EXPECT_EQ(back.error().code, ErrorCode::kCorrupt);
  }
}

// A wrong count within the last block of int4 does not change the size.
TEST_P(EveryChain, RefusesTheWrongCountAndTrailingBytes) {
  const auto codec = codec_of(GetParam());
  auto wire = encoded(*codec, exact_values(256));
  EXPECT_FALSE(decoded(*codec, wire, 128).ok());
  EXPECT_FALSE(decoded(*codec, wire, 257).ok());
  wire.push_back(std::byte{0});
  EXPECT_FALSE(decoded(*codec, wire, 256).ok());
}

TEST_P(EveryChain, SurvivesArbitraryBytes) {
  const auto codec = codec_of(GetParam());
  EXPECT_TRUE(rc::check("decode neither crashes nor overruns", [&] {
    const auto bytes = *rc::gen::arbitrary<std::vector<std::uint8_t>>();
    std::vector<std::byte> wire;
    for (const auto byte : bytes) wire.push_back(std::byte{byte});
    const auto back = decoded(*codec, wire, 3);
    if (!back.ok()) RC_ASSERT(back.error().code == ErrorCode::kCorrupt);
  }));
}

TEST_P(EveryChain, AddsWhatItDecodes) {
  const auto codec = codec_of(GetParam());
  for (const std::size_t count : {0U, 1U, 127U, 4096U, 10'001U}) {
    const auto values = exact_values(count);
    const auto wire = encoded(*codec, values);
    const auto back = decoded(*codec, wire, count);
    ASSERT_TRUE(back.ok());
    std::vector<float> sum(count, 0.1F);
    ASSERT_TRUE(codec->decode_add(wire, sum).ok());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(sum[i], 0.1F + (*back)[i]) << i;
  }
}

TEST_P(EveryChain, AddsNothingDamaged) {
  const auto codec = codec_of(GetParam());
  auto wire = encoded(*codec, exact_values(300));
  wire.pop_back();
  std::vector<float> sum(300);
  const auto added = codec->decode_add(wire, sum);
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().code, ErrorCode::kCorrupt);
}

TEST_P(EveryChain, IsSafeToShareBetweenThreads) {
  const auto codec = codec_of(GetParam());
  const auto values = exact_values(5000);
  const auto wire = encoded(*codec, values);
  const auto first = decoded(*codec, wire, values.size());
  ASSERT_TRUE(first.ok());
  std::vector<int> right(4);
  {
    std::vector<std::jthread> threads;
    for (int& count : right) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          count += encoded(*codec, values) == wire ? 1 : 0;
          const auto back = decoded(*codec, wire, values.size());
          count += back.ok() && *back == *first ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(right, std::vector<int>(4, 40));
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryChain, testing::ValuesIn(chains_of_formats()));
INSTANTIATE_TEST_SUITE_P(Chains,
                         EveryChain,
                         testing::Values("zstd(1)",
                                         "bf16|zstd(19)",
                                         "topk(0.25)",
                                         "topk(0.01)|fp16",
                                         "topk(0.5)|bf16",
                                         "topk(0.1)|zstd(2)",
                                         "topk(1)|int8|zstd(1)"));

class EveryWholeChain : public EveryChain {};

TEST_P(EveryWholeChain, BringsAllValuesNearlyBack) {
  const auto codec = codec_of(GetParam());
  const auto values = exact_values(1000);
  const auto back = decoded(*codec, encoded(*codec, values), values.size());
  ASSERT_TRUE(back.ok()) << describe(back.error());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR((*back)[i], values[i], 6) << i;
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryWholeChain, testing::ValuesIn([] {
                           const std::vector<const char*> names = format_names();
                           return std::vector<std::string>(names.begin(), names.end());
                         }()));
INSTANTIATE_TEST_SUITE_P(
    Chains,
    EveryWholeChain,
    testing::Values("zstd(1)", "int8|zstd(1)", "topk(1)", "topk(1)|int8|zstd(1)"));

class EveryDenseChain : public EveryChain {};

TEST_P(EveryDenseChain, BringsExactValuesBack) {
  const auto codec = codec_of(GetParam());
  for (const std::size_t count : {0U, 1U, 7U, 8U, 1000U, 100'003U}) {
    const auto values = exact_values(count);
    const auto back = decoded(*codec, encoded(*codec, values), count);
    ASSERT_TRUE(back.ok()) << describe(back.error());
    EXPECT_EQ(*back, values);
  }
}

INSTANTIATE_TEST_SUITE_P(Chains,
                         EveryDenseChain,
                         testing::Values("none",
                                         "fp16",
                                         "bf16",
                                         "zstd(1)",
                                         "fp16|zstd(1)",
                                         "bf16|zstd(19)",
                                         "topk(1)|fp16|zstd(3)"));

TEST(Codec, BlocksTakeAsManyBytesAsTheDocumentSays) {
  const auto int8 = codec_of("int8");
  const auto int4 = codec_of("int4");
  for (std::size_t count = 0; count <= 1000; ++count) {
    const std::size_t blocks = (count + 127) / 128;
    EXPECT_EQ(int8->bytes_max(count), count + 4 * blocks);
    EXPECT_EQ(int4->bytes_max(count), 68 * blocks);
  }
}

TEST(Codec, NoneKeepsEveryBit) {
  const std::vector<float> values = {-0.0F, 1e-42F, INFINITY, 3.14159274F};
  const auto codec = codec_of("none");
  const auto back = decoded(*codec, encoded(*codec, values), values.size());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, values);
  EXPECT_TRUE(std::signbit(back->front()));
}

TEST(Codec, AcceptsSpacesAndAnExplicitNone) {
  EXPECT_EQ(codec_of(" fp16 | zstd(3) ")->name(), "fp16|zstd(3)");
  EXPECT_EQ(codec_of("none|zstd(3)")->name(), "zstd(3)");
  EXPECT_EQ(codec_of("topk(0.010) | none")->name(), "topk(0.01)");
}

TEST(Codec, ZstdShrinksWhatRepeats) {
  EXPECT_LT(encoded(*codec_of("fp16|zstd(1)"), exact_values(10'000)).size(), 1000U);
}

class NotAChain : public testing::TestWithParam<const char*> {};

TEST_P(NotAChain, IsRefusedWithTheKnownCodecs) {
  const auto codec = make_codec(GetParam());
  ASSERT_FALSE(codec.ok());
  EXPECT_EQ(codec.error().code, ErrorCode::kConfig);
  EXPECT_THAT(codec.error().what, HasSubstr(GetParam()));
  EXPECT_THAT(codec.error().remedy, HasSubstr("fp16"));
  EXPECT_THAT(codec.error().remedy, HasSubstr("topk(DENSITY)"));
}

INSTANTIATE_TEST_SUITE_P(Texts,
                         NotAChain,
                         testing::Values("",
                                         "|",
                                         "auto",
                                         "fp12",
                                         "fp16|",
                                         "|fp16",
                                         "fp16|bf16",
                                         "zstd",
                                         "zstd()",
                                         "zstd(0)",
                                         "zstd(20)",
                                         "zstd(-1)",
                                         "zstd(1",
                                         "zstd(1x)",
                                         "zstd(1)|fp16",
                                         "fp16(1)",
                                         "int8(1)",
                                         "int4|int8",
                                         "zstd(1)|int4",
                                         "zstd(1)|zstd(1)",
                                         "zstd(99999999999)",
                                         "topk",
                                         "topk()",
                                         "topk(0)",
                                         "topk(-0.1)",
                                         "topk(1.01)",
                                         "topk(nan)",
                                         "topk(0.1x)",
                                         "topk(0.1)|int4",
                                         "topk(0.1)|topk(0.1)",
                                         "fp16|topk(0.1)",
                                         "zstd(1)|topk(0.1)",
                                         "topk(0.1)|lowrank(4)",
                                         "fp16|lowrank(4)",
                                         "topk(0.1)|zstd(1)|fp16"));

// Earlier versions had it, so configurations and plans may name it.
TEST(Codec, OfLowRankIsRefusedWithWhatToUseInstead) {
  for (const char* chain : {"lowrank(4)", "lowrank(4)|fp16", " lowrank(2) | int8 | zstd(1)",
                            "lowrank", "lowrank(4)|topk(0.1)"}) {
    const auto codec = make_codec(chain);
    ASSERT_FALSE(codec.ok()) << chain;
    EXPECT_EQ(codec.error().code, ErrorCode::kConfig);
    EXPECT_THAT(codec.error().what, HasSubstr(chain));
    EXPECT_THAT(codec.error().cause, HasSubstr("lowrank was removed"));
    EXPECT_THAT(codec.error().remedy,
                AllOf(HasSubstr("int8"), HasSubstr("int4"), HasSubstr("topk(DENSITY)")));
    EXPECT_TRUE(removed_codec(chain).has_value()) << chain;
  }
  for (const char* chain : {"fp16|lowrank(4)", "lowrank4", "half", "int8", ""}) {
    EXPECT_FALSE(removed_codec(chain).has_value()) << chain;
  }
}

TEST(ZstdCodec, RefusesABombBeforeUnpackingIt) {
  const auto wire = zstd_frame(std::vector<std::byte>(1 << 24));
  const auto back = decoded(*codec_of("zstd(1)"), wire, 4);
  ASSERT_FALSE(back.ok());
  EXPECT_THAT(back.error().cause, HasSubstr("expected 16 bytes"));
}

TEST(ZstdCodec, RefusesTwoFrames) {
  auto wire = zstd_frame(std::vector<std::byte>(16));
  const auto more = zstd_frame({});
  wire.insert(wire.end(), more.begin(), more.end());
  EXPECT_FALSE(decoded(*codec_of("zstd(1)"), wire, 4).ok());
}

TEST(ZstdCodec, RefusesAFrameWithoutContentSize) {
  std::vector<std::byte> wire(ZSTD_compressBound(16));
  const std::vector<std::byte> content(16);
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  wire.resize(ZSTD_compress2(context, wire.data(), wire.size(), content.data(), content.size()));
  ZSTD_freeCCtx(context);
  EXPECT_FALSE(decoded(*codec_of("zstd(1)"), wire, 4).ok());
}

}  // namespace
}  // namespace motley

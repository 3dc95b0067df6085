#include "compression/sparse/sparse_codec.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "compression/codec_chain.h"
#include "compression/make_codec.h"
#include "compression/sparse/sparse_threshold.h"
#include "tests/compression/read_sparse.h"
#include "tests/support/property.h"

namespace motley {
namespace {

std::unique_ptr<const Codec> codec_of(const std::string& chain) {
  auto codec = make_codec(chain);
  EXPECT_TRUE(codec.ok()) << chain;
  return std::move(codec).value();
}

Bytes encoded(const Codec& codec, const Floats& values) {
  Bytes wire(codec.bytes_max(values.size()) + 1, std::byte{0xA5});
  const std::size_t bytes = codec.encode(values, std::span(wire).first(wire.size() - 1));
  EXPECT_EQ(wire.back(), std::byte{0xA5});
  wire.resize(bytes);
  return wire;
}

Result<Floats> decoded(const Codec& codec, const Bytes& wire, std::size_t count) {
  Floats values(count, 42.0F);
  if (auto done = codec.decode(wire, values); !done.ok()) return done.error();
  return values;
}

Bytes bytes_of(std::initializer_list<int> numbers) {
  Bytes bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

SparseMessage message_of(const std::string& chain,
                         const std::string& format,
                         const Floats& values) {
  const Bytes wire = encoded(*codec_of(chain), values);
  const auto message = SparseReader(wire, format).read();
  EXPECT_TRUE(message.has_value()) << chain;
  return message.value_or(SparseMessage{});
}

std::size_t kept_of(const Floats& values, const std::string& chain = "topk(0.01)") {
  return message_of(chain, "none", values).kept.size();
}

// Any length; densities on both sides of the one at which a mask becomes shorter than gaps.
struct Case {
  std::string chain;
  std::string format;
  Floats values;
};

rc::Gen<Case> any_case() {
  return rc::gen::exec([] {
    const auto count = *rc::gen::inRange<std::size_t>(0, 10'000);
    const auto density = *rc::gen::element<std::string>("0.001", "0.01", "0.1", "0.25", "1");
    const auto format = *rc::gen::element<std::string>("none", "fp16", "int8");
    const auto seed = *rc::gen::inRange(0U, 1000U);
    const bool heavy = *rc::gen::arbitrary<bool>();
    return Case{"topk(" + density + ")|" + format, format,
                heavy ? heavy_slice(count, seed) : normal_slice(count, seed)};
  });
}

TEST(SparseCodec, WritesTheGapsOfTheDocument) {
  Floats values(600);
  values[1] = 5;
  values[300] = -2;
  EXPECT_EQ(encoded(*codec_of("topk(0.004)|fp16"), values),
            bytes_of({0x58, 0x02, 0, 0, 0, 0, 0, 0, 0x02, 0x00, 0x01, 0xFF, 0x2B, 0x00, 0x45, 0x00,
                      0xC0}));
}

TEST(SparseCodec, WritesTheMaskOfTheDocument) {
  const Floats values = {0, 5, 0, 0, 0, -2, 0, 0, 0, 0};
  EXPECT_EQ(encoded(*codec_of("topk(0.2)"), values),
            bytes_of({0x0A, 0,    0,    0,    0,    0,    0,    0,    0x02, 0x00,
                      0x22, 0x00, 0x00, 0x00, 0xA0, 0x40, 0x00, 0x00, 0x00, 0xC0}));
}

RC_GTEST_PROP(SparseCodec, DecodesAsTheDocumentSays, ()) {
  const Case c = *any_case();
  const auto codec = codec_of(c.chain);
  const Bytes wire = encoded(*codec, c.values);
  const auto message = SparseReader(wire, c.format).read();
  RC_ASSERT(message.has_value());
  RC_ASSERT(message->count == c.values.size());
  const auto back = decoded(*codec, wire, c.values.size());
  RC_ASSERT(back.ok());
  for (std::size_t i = 0; i < c.values.size(); ++i) {
    const auto kept = message->kept.find(i);
    RC_ASSERT((*back)[i] == (kept == message->kept.end() ? 0.0F : kept->second));
  }
}

// In fp32 the selected values are exact, and no other value is larger. Their number varies unless
// the sample is the whole slice.
RC_GTEST_PROP(SparseCodec, KeepsTheLargestAndAsManyAsAsked, ()) {
  const Case c = *any_case();
  const auto density = *parse_codec_chain(c.chain).value().density;
  const auto message = message_of("topk(" + std::to_string(density) + ")", "none", c.values);
  const std::size_t wanted = selection_target(c.values.size(), density);
  RC_ASSERT(message.kept.size() + 2 >= wanted - wanted / 8);
  RC_ASSERT(message.kept.size() <= wanted + wanted / 8 + 2);
  float least = FLT_MAX;
  for (const auto& [place, value] : message.kept) {
    RC_ASSERT(value == c.values[place]);
    least = std::min(least, std::abs(value));
  }
  for (std::size_t i = 0; i < c.values.size(); ++i) {
    RC_ASSERT(message.kept.contains(i) || std::abs(c.values[i]) <= least);
  }
}

TEST(SparseCodec, KeepsNearlyAsManyOfALargeSliceFromASample) {
  for (const std::size_t count : {1'000'000U, 3'000'000U}) {
    const auto wanted = static_cast<double>(count) / 100;
    EXPECT_NEAR(static_cast<double>(kept_of(normal_slice(count))), wanted, 0.1 * wanted);
    EXPECT_NEAR(static_cast<double>(kept_of(heavy_slice(count))), wanted, 0.1 * wanted);
  }
}

TEST(SparseCodec, KeepsAsManyOfEqualValuesAsAsked) {
  EXPECT_EQ(kept_of(Floats(100'000, -3.0F)), 1000U);
  EXPECT_EQ(kept_of(Floats(1'000'000, 1e-40F)), 10'000U);
}

TEST(SparseCodec, KeepsNoZeros) {
  EXPECT_EQ(kept_of(Floats(10'000)), 0U);
  Floats values(10'000, -0.0F);
  values[77] = 1e-45F;
  EXPECT_EQ(kept_of(values), 1U);
}

TEST(SparseCodec, KeepsOneOfATinySlice) {
  EXPECT_EQ(kept_of({}), 0U);
  EXPECT_EQ(kept_of({2.0F}), 1U);
  EXPECT_EQ(message_of("topk(0.01)", "none", {1, -3, 2}).kept,
            (std::map<std::size_t, float>{{1, -3}}));
}

TEST(SparseCodec, TurnsABlockThatIsNotFiniteIntoNaNAndNoOther) {
  for (const float bad : {INFINITY, -INFINITY, NAN, -NAN}) {
    for (const std::size_t place : {4096U, 5000U, 8191U}) {
      Floats values = normal_slice(9000);
      values[place] = bad;
      const auto codec = codec_of("topk(0.01)|int8");
      const auto back = decoded(*codec, encoded(*codec, values), values.size());
      ASSERT_TRUE(back.ok());
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(std::isnan((*back)[i]), i / 4096 == 1) << i;
      }
    }
  }
}

TEST(SparseCodec, TurnsASliceThatIsNowhereFiniteIntoNaN) {
  const auto codec = codec_of("topk(0.01)");
  const auto back = decoded(*codec, encoded(*codec, Floats(10'000, NAN)), 10'000);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(std::ranges::all_of(*back, [](float value) { return std::isnan(value); }));
}

TEST(SparseCodec, KeepsWhatIsFiniteFinite) {
  for (const char* chain : {"topk(0.5)", "topk(0.5)|fp16", "topk(0.5)|bf16", "topk(0.5)|int8"}) {
    const auto codec = codec_of(chain);
    const auto back = decoded(*codec, encoded(*codec, Floats(500, -FLT_MAX)), 500);
    ASSERT_TRUE(back.ok());
    for (const float value : *back) EXPECT_TRUE(std::isfinite(value)) << chain;
  }
}

RC_GTEST_PROP(SparseCodec, AddsWhatItDecodes, ()) {
  const Case c = *any_case();
  const auto codec = codec_of(c.chain);
  const Bytes wire = encoded(*codec, c.values);
  const Floats before = normal_slice(c.values.size(), 7);
  Floats sum = before;
  RC_ASSERT(codec->decode_add(wire, sum).ok());
  const auto back = decoded(*codec, wire, c.values.size());
  RC_ASSERT(back.ok());
  for (std::size_t i = 0; i < sum.size(); ++i) RC_ASSERT(sum[i] == before[i] + (*back)[i]);
}

// A message is accepted if and only if it is valid by the document.
RC_GTEST_PROP(SparseCodec, RefusesWhatIsNoMessage, ()) {
  const auto format = *rc::gen::element<std::string>("none", "fp16", "int8");
  const auto codec = codec_of("topk(0.2)|" + format);
  const auto count = *rc::gen::inRange<std::size_t>(0, 6000);
  Bytes wire = encoded(*codec, normal_slice(count));
  const auto edits = *rc::gen::inRange(1, 4);
  for (int edit = 0; edit < edits && !wire.empty(); ++edit) {
    const auto at = *rc::gen::inRange<std::size_t>(0, wire.size());
    const auto place = wire.begin() + static_cast<std::ptrdiff_t>(at);
    const auto byte = std::byte{*rc::gen::arbitrary<std::uint8_t>()};
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        *place = byte;
        break;
      case 1:
        wire.insert(place, byte);
        break;
      case 2:
        wire.erase(place);
        break;
      default:
        wire.resize(at);
        break;
    }
  }
  const auto message = SparseReader(wire, format).read();
  const bool right =
      message.has_value() && message->count == count && wire.size() <= codec->bytes_max(count);
  const auto back = decoded(*codec, wire, count);
  RC_ASSERT(back.ok() == right);
  if (!back.ok()) RC_ASSERT(back.error().code == ErrorCode::kCorrupt);
  Floats sum(count);
  RC_ASSERT(codec->decode_add(wire, sum).ok() == right);
}

TEST(SparseCodec, RefusesMoreThanTheDensityAllows) {
  const Floats values = normal_slice(5000);
  const Bytes dense = encoded(*codec_of("topk(0.9)"), values);
  EXPECT_FALSE(decoded(*codec_of("topk(0.01)"), dense, values.size()).ok());
  const SparseOptions warming = {0.01, 0.9, parse_codec_chain("none").value().format};
  EXPECT_TRUE(decoded(*make_sparse_codec(warming), dense, values.size()).ok());
}

TEST(SparseCodec, TakesAsManyBytesAsTheDocumentSays) {
  const std::size_t count = 1 << 20;
  const double per_value = 0.01 * 1.05;  // the error of a sample
  const auto bytes = [&](const char* chain) {
    return static_cast<double>(encoded(*codec_of(chain), normal_slice(count)).size()) / count;
  };
  EXPECT_LT(bytes("topk(0.01)"), 5.2 * per_value + 2.0 / 4096);
  EXPECT_LT(bytes("topk(0.01)|int8"), 2.2 * per_value + 6.0 / 4096);
  EXPECT_LT(codec_of("topk(0.01)|int8")->bytes_max(count), count * 0.04);
}

}  // namespace
}  // namespace motley

#include "compression/facts/codec_facts.h"

#include <set>
#include <string>

#include <gmock/gmock.h>

#include "compression/codec_chain.h"
#include "compression/make_codec.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CodecFacts, HaveOneEntryForEachKindAndName) {
  std::set<std::string> names;
  for (const CodecFacts& each : codecs()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_EQ(&codec_facts(each.kind), &each) << each.name;
    EXPECT_EQ(find_codec(each.name), &each) << each.name;
  }
  EXPECT_EQ(find_codec("fp16|zstd(1)"), nullptr);
}

// In each place a name is accepted exactly if the table has it there.
TEST(CodecFacts, AreTheNamesOfChains) {
  for (const CodecFacts& each : codecs()) {
    const bool is_format = each.place == ChainPlace::kFormat;
    EXPECT_EQ(make_codec(each.name).ok(), is_format) << each.name;
    if (!is_format) continue;
    EXPECT_EQ((*make_codec(each.name))->name(), each.name);
    const auto sparse = parse_codec_chain(std::string("topk(0.1)|") + each.name);
    EXPECT_EQ(sparse.ok(), each.topk_refusal == nullptr) << each.name;
    if (!sparse.ok()) {
      EXPECT_EQ(sparse.error().cause, each.topk_refusal);
    }
  }
}

TEST(CodecFacts, NameMeasuredAndBenchedChainsThatExist) {
  for (const CodecFacts& each : codecs()) {
    if (each.is_measured) {
      EXPECT_TRUE(make_codec(each.name).ok()) << each.name;
    }
    for (const auto& chains : {each.bench_chains, each.allreduce_chains}) {
      for (const char* chain : chains) EXPECT_TRUE(make_codec(chain).ok()) << chain;
    }
    // A plan can choose only among measured codecs, and plain fp32.
    const bool is_chosen = each.auto_gain_activations || each.auto_gain_gradients;
    if (is_chosen || each.is_advised) {
      EXPECT_TRUE(each.is_measured || each.kind == CodecKind::kNone) << each.name;
    }
  }
}

TEST(CodecFacts, AreInTheHintOfARefusedChain) {
  const std::string hint = make_codec("nothing").error().remedy;
  EXPECT_EQ(
      hint,
      "use none, fp16, bf16, int8, int4, topk(DENSITY) with a density above 0 and up to 1, or "
      "zstd(LEVEL) with a level of 1 to 19; or a chain of topk, the format of its values "
      "(fp16, bf16 or int8) and zstd, such as fp16|zstd(1) or topk(0.01)|int8");
  for (const CodecFacts& each : codecs()) EXPECT_THAT(hint, HasSubstr(each.name));
}

TEST(AutoCodecs, AreGroupedByTheGainThatTheyNeed) {
  const auto gradients = auto_codecs(CodecUse::kGradients, true);
  ASSERT_EQ(gradients.size(), 2U);
  EXPECT_EQ(gradients[0].least_gain, 0);
  EXPECT_THAT(gradients[0].names, ElementsAre(testing::StrEq("none"), testing::StrEq("fp16")));
  EXPECT_EQ(gradients[1].least_gain, 0.03);
  EXPECT_THAT(gradients[1].names, ElementsAre(testing::StrEq("int8"), testing::StrEq("int4")));
  // Activations have no error feedback.
  for (const bool has_feedback : {false, true}) {
    EXPECT_EQ(auto_codecs(CodecUse::kActivations, has_feedback).size(), 3U);
  }
  EXPECT_THAT(auto_codecs(CodecUse::kGradients, false)[1].names,
              ElementsAre(testing::StrEq("int8")));
}

TEST(AutoCodecs, HaveATextForTheHelp) {
  EXPECT_EQ(auto_codecs_text(CodecUse::kActivations),
            "none, fp16 or, where it shortens the step by 3 %, int8, by 15 %, int4");
  EXPECT_EQ(auto_codecs_text(CodecUse::kGradients),
            "none, fp16 or, where it shortens the step by 3 %, int8 or int4");
}

}  // namespace
}  // namespace motley

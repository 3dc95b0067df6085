#include "plan/pins.h"

#include <gmock/gmock.h>

#include "base/result.h"
#include "plan/cluster/cluster_file.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kLayers = {"embed", "h.0.attn", "h.0.mlp", "h.1.attn", "head"};

Cluster desktop_and_laptop() {
  return *parse_cluster("[[machine]]\nname = 'desktop'\n[[machine]]\nname = 'laptop'\n", "c.toml");
}

std::string verdict(const std::vector<std::string>& texts) {
  const auto pins = parse_pins(texts);
  const auto checked =
      pins.ok() ? check_pins(*pins, kLayers, desktop_and_laptop()) : Result<void>(pins.error());
  if (checked.ok()) return "accepted";
  EXPECT_EQ(checked.error().code, ErrorCode::kConfig);
  return describe(checked.error());
}

TEST(ParsePins, ReadsEverySentence) {
  const auto pins = parse_pins({"layer h.0.attn on laptop", "layers 3-4 on desktop", "never old",
                                " always  desktop ", "laptop at most 62.5% memory"});
  ASSERT_TRUE(pins.ok()) << describe(pins.error());
  const Pins expected{{{"h.0.attn", "laptop"}, {"3", "desktop"}, {"4", "desktop"}},
                      {"old"},
                      {"desktop"},
                      {{"laptop", 0.625}}};
  EXPECT_EQ(*pins, expected);
}

struct Mistake {
  std::vector<std::string> texts;
  const char* message;
};

class PinMistake : public testing::TestWithParam<Mistake> {};

TEST_P(PinMistake, IsNamed) {
  EXPECT_THAT(verdict(GetParam().texts), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Sentences,
                         PinMistake,
                         testing::Values(Mistake{{""}, "unusable pin ''"},
                                         Mistake{{"layer 3 at laptop"},
                                                 "unusable pin 'layer 3 at laptop'"},
                                         Mistake{{"layers 4-3 on laptop"}, "FIRST-LAST"},
                                         Mistake{{"layers 0--3 on laptop"}, "FIRST-LAST"},
                                         Mistake{{"layers 0-99999999999 on laptop"}, "FIRST-LAST"},
                                         Mistake{{"layers 3 on laptop"}, "FIRST-LAST"},
                                         Mistake{{"never lap;top"}, "letters, digits"},
                                         Mistake{{"laptop at most 0% memory"}, "above 0%"},
                                         Mistake{{"laptop at most 101% memory"}, "above 0%"},
                                         Mistake{{"laptop at most nan% memory"}, "above 0%"},
                                         Mistake{{"laptop at most 0.5 memory"}, "above 0%"},
                                         Mistake{{std::string(100'000, 'x')}, "too long"}));

INSTANTIATE_TEST_SUITE_P(
    Names,
    PinMistake,
    testing::Values(Mistake{{"never laptpo"}, "did you mean 'laptop'?"},
                    Mistake{{"always qqqqqq"}, "use one of: desktop, laptop"},
                    Mistake{{"labtop at most 50% memory"}, "unknown machine 'labtop'"},
                    Mistake{{"layer 0 on lap"}, "unknown machine 'lap'"},
                    Mistake{{"layer h.0.atn on laptop"}, "did you mean 'h.0.attn'?"},
                    Mistake{{"layer h.50.attn on laptop"}, "of this kind are h.0.attn to h.1.attn"},
                    Mistake{{"layer 5 on laptop"}, "the model has 5 layers"}));

INSTANTIATE_TEST_SUITE_P(
    Contradictions,
    PinMistake,
    testing::Values(
        Mistake{{"never laptop", "always laptop"}, "another pin excludes it"},
        Mistake{{"never laptop", "layer 0 on laptop"}, "another pin excludes this machine"},
        Mistake{{"layer head on laptop", "layer 4 on desktop"}, "'head' has two pins"},
        Mistake{{"never laptop", "never desktop"}, "exclude every machine"},
        Mistake{{"laptop at most 5% memory", "laptop at most 6% memory"}, "another pin limits"}));

TEST(ParsePins, RefusesRangesThatTogetherAreTooLong) {
  const std::vector<std::string> half(2, "layers 0-49999 on box");
  EXPECT_TRUE(parse_pins(half).ok());
  const auto pins = parse_pins({half[0], half[1], "layers 7-7 on box"});
  ASSERT_FALSE(pins.ok());
  EXPECT_EQ(pins.error().code, ErrorCode::kConfig);
  EXPECT_EQ(pins.error().cause, "the pins place more than 100000 layers");
}

TEST(PinTexts, AreTheSentencesAgain) {
  const std::vector<std::string> texts = {"layer h.0.attn on laptop",
                                          "layers 3-5 on desktop",
                                          "layer 7 on desktop",
                                          "layers 8-9 on laptop",
                                          "never old",
                                          "always desktop",
                                          "laptop at most 62.5% memory"};
  EXPECT_EQ(pin_texts(parse_pins(texts).value()), texts);
  EXPECT_THAT(pin_texts({}), testing::IsEmpty());
}

TEST(CheckPins, TakesPinsThatAgree) {
  EXPECT_EQ(verdict({"layers 0-2 on laptop", "layer h.0.mlp on laptop", "never desktop"}),
            "accepted");
}

TEST(PinnedLayer, PrefersANameToAnIndex) {
  EXPECT_EQ(pinned_layer("1", {"a", "b", "1"}), 2);
  EXPECT_EQ(pinned_layer("1", {"a", "b"}), 1);
  EXPECT_EQ(pinned_layer("-1", {"a", "b"}), std::nullopt);
}

RC_GTEST_PROP(ParsePins, ReturnsWhateverIsWritten, ()) {
  const auto word =
      rc::gen::element<std::string>("layer", "layers", "on", "never", "always", "at", "most",
                                    "memory", "5%", "0-3", "laptop", "-", "%");
  const auto words = *rc::gen::container<std::vector<std::string>>(word);
  std::string text = *rc::gen::arbitrary<std::string>();
  for (const std::string& w : words) text += " " + w;
  const auto pins = parse_pins({text});
  if (!pins.ok()) RC_ASSERT(pins.error().code == ErrorCode::kConfig);
}

}  // namespace
}  // namespace motley

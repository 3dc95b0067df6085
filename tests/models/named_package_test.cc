// package.json of a model that takes its inputs by name.
#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fuzz/package_laws.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string replaced(std::string text, const std::string& old, const std::string& with) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, text.npos) << old;
  return text.replace(at, old.size(), with);
}

// The cause for which the valid package with a change is refused.
std::string cause_with(const std::string& old, const std::string& with) {
  const auto package = parse_package(replaced(right_named_package(), old, with), "package.json");
  EXPECT_FALSE(package.ok()) << old << " -> " << with;
  if (package.ok()) return "";
  EXPECT_EQ(package.error().code, ErrorCode::kCorrupt) << describe(package.error());
  return package.error().cause;
}

TEST(NamedInputsOfPackage, AreReadInTheirOrder) {
  const Package package = parse_package(right_named_package(), "package.json").value();
  EXPECT_THAT(package.inputs,
              ElementsAre(SampleInput{"pixel_values", {Dtype::kFloat32, {4}}, std::nullopt},
                          SampleInput{"input_ids", {Dtype::kInt64, {2}}, 50},
                          SampleInput{"mask", {Dtype::kBool, {2, 1}}, std::nullopt},
                          SampleInput{"weights_2", {Dtype::kInt64, {}}, std::nullopt}));
  const std::vector<BoundarySpec> specs = package.inputs_of(0);
  ASSERT_EQ(specs.size(), 4U);
  for (const BoundarySpec& spec : specs) EXPECT_FALSE(spec.gradient);
}

// A single input has the signature of earlier versions, so that machines use their measurements.
TEST(NamedInputsOfPackage, ChangeNoSignatureWhereThereIsOne) {
  const std::string named =
      replaced(replaced(right_package(), "\"version\": 1", "\"version\": 3"),
               "\"input\": {\"type\": \"float32\", \"shape\": [4]}, \"input_limit\": 0,",
               R"("inputs": [{"name": "x", "type": "float32", "shape": [4], "limit": null}],)");
  const Package one = parse_package(named, "package.json").value();
  const Package before = parse_package(right_package(), "package.json").value();
  const Package several = parse_package(right_named_package(), "package.json").value();
  EXPECT_EQ(one.layers[0].signature, before.layers[0].signature);
  EXPECT_NE(several.layers[0].signature, before.layers[0].signature);
  EXPECT_EQ(several.layers[1].signature, before.layers[1].signature);
}

TEST(NamedInputsOfPackage, NeedVersionThree) {
  EXPECT_THAT(cause_with("\"version\": 3", "\"version\": 2"), HasSubstr("unknown key 'inputs'"));
}

TEST(NamedInputsOfPackage, ExcludeASingleInput) {
  EXPECT_THAT(cause_with("\"inputs\": [", "\"input_limit\": 0, \"inputs\": ["),
              HasSubstr("unknown key 'input_limit'"));
}

TEST(NamedInputsOfPackage, HaveNamesOfArgumentsAndFiles) {
  for (const char* const name :
       {"", "2x", "a b", "a.b", "../a", "a-b", "\u00e4", "a\\u0000", "a\\n"}) {
    EXPECT_THAT(cause_with("\"name\": \"mask\"", fmt::format("\"name\": \"{}\"", name)),
                HasSubstr("letters"))
        << name;
  }
  EXPECT_THAT(cause_with("\"name\": \"mask\"", "\"name\": \"" + std::string(101, 'a') + "\""),
              HasSubstr("1 to 100"));
  EXPECT_THAT(cause_with("\"name\": \"mask\"", "\"name\": \"Input_IDs\""), HasSubstr("two inputs"));
}

TEST(NamedInputsOfPackage, HaveTypesAndLimits) {
  EXPECT_THAT(cause_with("\"type\": \"bool\"", "\"type\": \"int8\""), HasSubstr("int8"));
  EXPECT_THAT(cause_with("\"limit\": 50", "\"limit\": 0"), HasSubstr("0"));
  EXPECT_THAT(cause_with("\"shape\": [2, 1], \"limit\": null", "\"shape\": [2, 1], \"limit\": 2"),
              HasSubstr("only integers have a limit"));
  EXPECT_THAT(cause_with("\"shape\": [2, 1], \"limit\": null", "\"shape\": [2, 1]"),
              HasSubstr("'limit' is missing"));
}

TEST(NamedInputsOfPackage, HaveSizesWithinTheLimits) {
  constexpr const char* kIds = "\"shape\": [2], \"limit\": 50";
  EXPECT_THAT(cause_with(kIds, "\"shape\": [137438953473], \"limit\": 50"),
              HasSubstr("1099511627776 bytes"));
  std::string many = "\"inputs\": [";
  for (int k = 0; k < 61; ++k) {
    many += fmt::format(R"({{"name": "x{}", "type": "bool", "shape": [], "limit": null}},)", k);
  }
  EXPECT_THAT(cause_with("\"inputs\": [", many), HasSubstr("64"));
}

// A layer cannot use an input that the package does not have.
TEST(NamedInputsOfPackage, AreAllThatTheFirstLayerHas) {
  EXPECT_THAT(cause_with("\"takes\": [\"input:0\", \"parameter:0\"",
                         "\"takes\": [\"input:4\", \"parameter:0\""),
              HasSubstr("inputs"));
  EXPECT_TRUE(parse_package(replaced(right_named_package(), "\"takes\": [\"input:0\"",
                                     "\"takes\": [\"input:3\""),
                            "package.json")
                  .ok());
}

}  // namespace
}  // namespace motley

// Packages with constants of narrow types and with quantised weights: what is read and what
// refused.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/package/package.h"
#include "tests/fuzz/package_laws.h"
#include "tests/models/replaced_text.h"

namespace motley {
namespace {

using testing::HasSubstr;

// Why the text is no package.
std::string cause(const std::string& text) {
  const auto package = parse_package(text, "package.json");
  EXPECT_FALSE(package.ok());
  return package.ok() ? "" : package.error().cause;
}

// The right package with `body.scale` in a narrow type, converted wherever it is used.
std::string narrow_package(const std::string& type) {
  std::string text = replaced(right_package(), "\"version\": 1", "\"version\": 2");
  text = replaced(text, "\"type\": \"float32\", \"shape\": [3]}],\n   \"flops",
                  "\"type\": \"" + type + "\", \"shape\": [3]}],\n   \"flops");
  const auto converted = [](const std::string& value) {
    return "\"aten::_to_copy\", \"args\": [{\"value\": " + value +
           "}], \"kwargs\": {\"dtype\": {\"type\": \"float32\"}}";
  };
  const auto product = [](const std::string& a, const std::string& b) {
    return "\"aten::mul.Tensor\", \"args\": [{\"value\": " + a + "}, {\"value\": " + b +
           "}], \"kwargs\": {}";
  };
  text = replaced(text, product("5", "3"), converted("3"));  // forward
  text = replaced(text, product("3", "2"), converted("2"));  // input part
  return replaced(text, product("6", "3"), converted("3"));  // evaluation
}

TEST(NarrowPackage, ReadsConstantsOfNarrowTypesThatAreConverted) {
  const std::map<std::string, std::int64_t> bytes = {
      {"bfloat16", 6}, {"float16", 6}, {"int8", 3}, {"uint8", 3}};
  std::set<std::string> signatures;
  for (const auto& [type, size] : bytes) {
    const auto package = parse_package(narrow_package(type), "package.json");
    ASSERT_TRUE(package.ok()) << describe(package.error());
    EXPECT_EQ(package->layers[0].constants[0].tensor.bytes(), size) << type;
    signatures.insert(package->layers[0].signature);
  }
  EXPECT_EQ(signatures.size(), bytes.size());
}

TEST(NarrowPackage, RefusesToComputeWithNarrowTypes) {
  const std::string right = narrow_package("bfloat16");
  const std::string converts =
      R"("aten::_to_copy", "args": [{"value": 2}], "kwargs": {"dtype": {"type": "float32"}})";
  EXPECT_THAT(cause(replaced(right, converts,
                             R"("aten::mul.Tensor", "args": [{"value": 3}, {"value": 2}],
                                "kwargs": {})")),
              HasSubstr("layer 'body': aten::mul.Tensor computes with a constant of a narrow"));
  EXPECT_THAT(
      cause(replaced(right, converts, R"("aten::_to_copy", "args": [{"value": 2}], "kwargs": {})")),
      HasSubstr("aten::_to_copy computes with a constant of a narrow"));
  EXPECT_THAT(
      cause(replaced(right, converts, R"("aten::t", "args": [{"value": 2}], "kwargs": {})")),
      HasSubstr("aten::sum.dim_IntList computes with"));
  EXPECT_THAT(cause(replaced(right, "[\"saved:0\", 0]", "[\"saved:0\", 3]")),
              HasSubstr("saved:0 is of a narrow type"));
  EXPECT_THAT(cause(replaced(right, "{\"type\": \"float32\"}}", "{\"type\": \"bfloat16\"}}")),
              HasSubstr("is not float32, int64 or bool"));
  EXPECT_THAT(cause(replaced(right, "\"bfloat16\"", "\"float64\"")), HasSubstr("'float64'"));
  EXPECT_THAT(cause(replaced(right, "\"version\": 2", "\"version\": 1")),
              HasSubstr("it is 'bfloat16'; float32, int64 or bool was expected"));
}

TEST(NarrowPackage, ReadsTheMemoryOfConversions) {
  const std::string memory = "\"workspace_bytes\": 24}";
  const Package package =
      parse_package(
          replaced(right_package(), memory, "\"workspace_bytes\": 24, \"converted_bytes\": 80}"),
          "package.json")
          .value();
  EXPECT_EQ(package.graphs[0].memory.converted_bytes, 80);
  EXPECT_EQ(package.graphs[1].memory.converted_bytes, 0);
}

// The right package with a quantised weight of 5 times 20 elements whose tensors the head has.
std::string quantised_package(const std::string& codes,
                              const std::string& scales,
                              const std::string& table) {
  const auto constant = [](const std::string& name, const std::string& spec) {
    return "{\"name\": \"motley.base." + name + "\", " + spec + "}";
  };
  std::string listed = constant("w.codes", codes) + ", " + constant("w.scales", scales);
  if (!table.empty()) listed += ", " + constant("nf4", table);
  std::string text = replaced(right_package(), "\"version\": 1", "\"version\": 2");
  text = replaced(text, "\"statistics\": [], \"constants\": []",
                  "\"statistics\": [], \"constants\": [" + listed + "]");
  return replaced(text, "{\n\"format\"",
                  "{\"quantised\": {\"w\": {\"type\": \"bfloat16\", \"shape\": [5, 20], \"codes\": "
                  "\"motley.base.w.codes\", \"scales\": \"motley.base.w.scales\", \"table\": " +
                      (table.empty() ? std::string("null") : std::string("\"motley.base.nf4\"")) +
                      "}},\n\"format\"");
}

TEST(NarrowPackage, ReadsQuantisedWeights) {
  const std::string codes8 = R"("type": "int8", "shape": [5, 20])";
  const std::string codes4 = R"("type": "uint8", "shape": [2, 32])";
  const std::string table = R"("type": "float32", "shape": [256, 2])";
  const auto floats = [](const std::string& shape) {
    return "\"type\": \"float32\", \"shape\": " + shape;
  };
  for (const char* shape : {"[5, 1]", "[1, 20]"}) {
    const auto package =
        parse_package(quantised_package(codes8, floats(shape), ""), "package.json");
    ASSERT_TRUE(package.ok()) << describe(package.error());
    const QuantisedWeight& weight = package->quantised.at("w");
    EXPECT_EQ(weight.tensor, (TensorSpec{Dtype::kBFloat16, {5, 20}}));
    EXPECT_FALSE(weight.has_four_bits());
  }
  const auto four = parse_package(quantised_package(codes4, floats("[2, 1]"), table), "p.json");
  ASSERT_TRUE(four.ok()) << describe(four.error());
  EXPECT_EQ(four->quantised.at("w").table, "motley.base.nf4");

  EXPECT_THAT(cause(quantised_package(codes8, floats("[5, 20]"), "")),
              HasSubstr("is float32 [5, 20]; float32 [5, 1] was expected"));
  EXPECT_THAT(cause(quantised_package(codes4, floats("[5, 1]"), "")),
              HasSubstr("int8 [5, 20] was expected"));
  EXPECT_THAT(
      cause(quantised_package(R"("type": "uint8", "shape": [1, 32])", floats("[2, 1]"), table)),
      HasSubstr("uint8 [2, 32] was expected"));
  EXPECT_THAT(cause(quantised_package(codes4, floats("[2, 1]"), floats("[16, 1]"))),
              HasSubstr("float32 [256, 2] was expected"));
  const std::string right = quantised_package(codes8, floats("[5, 1]"), "");
  EXPECT_THAT(cause(replaced(right, "\"codes\": \"motley.base.w.codes\"", "\"codes\": \"x\"")),
              HasSubstr("no layer has the constant 'x'"));
  EXPECT_THAT(cause(replaced(right, "{\"w\": {", "{\"head.weight\": {")),
              HasSubstr("another tensor has this name"));
  EXPECT_THAT(cause(replaced(right, "[5, 20], \"codes\"", "[100], \"codes\"")),
              HasSubstr("two sizes"));
  EXPECT_THAT(cause(replaced(right, "\"type\": \"bfloat16\"", "\"type\": \"int64\"")),
              HasSubstr("it is 'int64'"));
  EXPECT_THAT(cause(replaced(right, "\"version\": 2", "\"version\": 1")),
              HasSubstr("it is 'int8'; float32, int64 or bool was expected"));
}

}  // namespace
}  // namespace motley

// Accepted and refused packages with boundary tensors that have no gradient.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/package/package.h"
#include "tests/fuzz/package_laws.h"
#include "tests/models/replaced_text.h"

namespace motley {
namespace {

using testing::HasSubstr;

// The valid package with a second boundary tensor that has no gradient, and with graphs to match.
std::string exact_package(const std::string& second = R"({"type": "float32", "shape": [4],
                                                        "gradient": false})") {
  std::string text = replaced(right_package(), "\"version\": 1", "\"version\": 2");
  text = replaced(text, R"({"type": "float32", "shape": [4]}])", second + "]");
  return replaced(text, ", [\"input_grad:1\", 9]", "");
}

TEST(ExactBoundaries, AreReadFromVersion2On) {
  const Package package = parse_package(exact_package(), "package.json").value();
  EXPECT_TRUE(package.layers[0].outputs[0].gradient);
  EXPECT_FALSE(package.layers[0].outputs[1].gradient);
  EXPECT_FALSE(package.inputs_of(0)[0].gradient);
  for (const char* other :
       {R"({"type": "int64", "shape": [4]})", R"({"type": "bool", "shape": [4]})",
        R"({"type": "bool", "shape": [4], "gradient": false})"}) {
    const auto read = parse_package(exact_package(other), "package.json");
    ASSERT_TRUE(read.ok()) << describe(read.error());
    EXPECT_FALSE(read->layers[0].outputs[1].gradient);
  }
  const auto before = parse_package(right_package(), "package.json");
  const std::string only_version = replaced(right_package(), "\"version\": 1", "\"version\": 2");
  const auto same = parse_package(only_version, "package.json");
  ASSERT_TRUE(same.ok()) << describe(same.error());
  for (std::size_t l = 0; l < 2; ++l) {
    EXPECT_EQ(same->layers[l].signature, before->layers[l].signature);
    EXPECT_NE(package.layers[l].signature, before->layers[l].signature);
  }
}

TEST(ExactBoundaries, HaveNoGradients) {
  const auto cause_of = [](const std::string& text) {
    const auto package = parse_package(text, "package.json");
    EXPECT_FALSE(package.ok());
    return package.ok() ? "" : package.error().cause;
  };
  EXPECT_THAT(cause_of(exact_package(R"({"type": "int64", "shape": [4], "gradient": true})")),
              HasSubstr("only float32 has a gradient"));
  EXPECT_THAT(cause_of(exact_package(R"({"type": "float32", "shape": [4], "gradient": 1})")),
              HasSubstr("true or false"));
  EXPECT_THAT(cause_of(exact_package(R"({"type": "float32", "shape": [4], "gradient": true})")),
              HasSubstr("input_grad:1 is missing"));
  EXPECT_THAT(cause_of(replaced(exact_package(), "[\"input_grad:0\", 8]",
                                "[\"input_grad:0\", 8], [\"input_grad:1\", 9]")),
              HasSubstr("input_grad:1 is returned"));
  EXPECT_THAT(cause_of(replaced(exact_package(), "\"grad:0\"", "\"grad:1\"")),
              HasSubstr("grad:1 does not exist"));
  EXPECT_THAT(cause_of(replaced(exact_package(), "[\"queued:0\", 4]",
                                "[\"queued:0\", 4], [\"input_grad:0\", 4]")),
              HasSubstr("input_grad:0 is returned"));
}

TEST(ExactBoundaries, AreRefusedInVersion1) {
  const auto in_version_1 = [](const std::string& second) {
    return replaced(exact_package(second), "\"version\": 2", "\"version\": 1");
  };
  const auto integers =
      parse_package(in_version_1(R"({"type": "int64", "shape": [4]})"), "package.json");
  ASSERT_FALSE(integers.ok());
  EXPECT_EQ(integers.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(integers.error().cause, HasSubstr("values between layers must be float32"));
  const auto mask = parse_package(
      in_version_1(R"({"type": "float32", "shape": [4], "gradient": false})"), "package.json");
  ASSERT_FALSE(mask.ok());
  EXPECT_THAT(mask.error().cause, HasSubstr("unknown key 'gradient'"));
}

TEST(ExactBoundaries, HaveNoMoreBytesThanATensorHasElements) {
  const std::string large = R"({"type": "int64", "shape": [137438953473]})";  // 2^37 + 1
  const auto package = parse_package(exact_package(large), "package.json");
  ASSERT_FALSE(package.ok());
  EXPECT_THAT(package.error().cause, HasSubstr("more values between layers"));
}

}  // namespace
}  // namespace motley

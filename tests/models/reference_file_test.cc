// The file of references: accepted or refused after any change, and the same hashed values as in
// Python.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "models/package/reference/reference.h"
#include "tests/fuzz/reference_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> fragments_of_references() {
  std::vector<std::string> fragments = fragments_of_text();
  for (const char* text : {"\"values\": []", "\"below\": 3", "\"below\": 0", "\"low\": 1e39", "-1",
                           "1099511627777", "[1, 2]", "\"layer\": 7", "\"parameter:9\"", "1e308",
                           "\"count\": 4", "\"output:0\"", "{}", "\"samples\": 64"}) {
    fragments.emplace_back(text);
  }
  return fragments;
}

Package package() {
  return *parse_package(right_package(), "p.json");
}

Result<PackageReferences> parsed(const std::string& body) {
  return parse_references(reference_file(body, package().sha256), package(), "r.jsonl");
}

RC_GTEST_PROP(DamagedReference, IsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_references(damaged(right_reference_body(), fragments_of_references())) ==
            "");
}

TEST(References, AreReadWhereTheyAreRight) {
  const auto references = parsed(right_reference_body());
  ASSERT_TRUE(references.ok()) << describe(references.error());
  ASSERT_EQ(references->layers.size(), 2U);
  const LayerReference& body = references->layers[0];
  EXPECT_EQ(body.training.size(), 5U);
  EXPECT_EQ(body.replaced.size(), 2U);
  EXPECT_EQ(body.training[3].digest.projections[1], -1.5);
  EXPECT_EQ(references->find(package(), 1), &references->layers[1]);
}

// The reference of a layer that passes on a mask and ids, with a gradient of one input.
std::string exact_reference_body() {
  const std::string outputs =
      right_tensors({{"output:0", 8}, {"output:1", 24}, {"output:2", 8}, {"output:3", 8}});
  const std::string gradients = right_tensors({{"input_grad:1", 24}, {"parameter_grad:0", 9}});
  return R"([{"layer": 2, "seed": 1, "samples": 2, "target": null, "inputs": [
      [{"count": 4, "values": [0, 1]}], [{"count": 12, "low": -1, "width": 2}],
      [{"count": 1, "values": [-3]}, {"count": 3, "below": 5}], [{"count": 4, "values": [0.5]}]],
      "replaced": {}, "training": )" +
         outputs.substr(0, outputs.size() - 1) + ", " + gradients.substr(1) +
         R"(, "evaluation": )" + outputs + "}]\n";
}

TEST(References, OfExactInputsHaveIntegersAndTruthValues) {
  const Package exact = **read_package(MOTLEY_PACKAGES_DIR "/exact.motley");
  const auto parsed_exact = [&](const std::string& body) {
    return parse_references(reference_file(body, exact.sha256), exact, "r.jsonl");
  };
  const std::string right = exact_reference_body();
  const auto references = parsed_exact(right);
  ASSERT_TRUE(references.ok()) << describe(references.error());
  EXPECT_EQ(references->layers[0].training.back().role, (RoleIndex{Role::kParameterGrad, 0}));
  EXPECT_EQ(references->layers[0].training[4].role, (RoleIndex{Role::kInputGrad, 1}));
  EXPECT_NE(references->find(exact, 3), nullptr) << "its layers are equal";
  for (const auto& [old, with] :
       std::vector<std::pair<std::string, std::string>>{{"[0, 1]", "[0, 2]"},
                                                        {"[0, 1]", "[0.5]"},
                                                        {"\"values\": [0, 1]", "\"below\": 3"},
                                                        {"[-3]", "[-3.5]"},
                                                        {"[-3]", "[1e300]"},
                                                        {"\"input_grad:1\"", "\"input_grad:0\""}}) {
    std::string wrong = right;
    wrong.replace(wrong.find(old), old.size(), with);
    EXPECT_FALSE(parsed_exact(wrong).ok()) << with;
  }
}

TEST(References, AreRefusedWhereAResultIsMissingOrOfAnotherSize) {
  for (const auto& [right, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"\"observed:0\"", "\"observed:1\""},
           {"\"count\": 12,", "\"count\": 13,"},
           {"\"below\": 2", "\"below\": 3"},
           {"\"values\": [0, 1]", "\"values\": []"},
           {"\"layer\": 1", "\"layer\": 0"},
           {"\"parameter:1\": {", "\"constant:0\": {"},
           {"\"target\": null", "\"target\": [{\"count\": 1, \"below\": 2}]"}}) {
    std::string body = right_reference_body();
    body.replace(body.find(right), right.size(), wrong);
    const auto references = parsed(body);
    ASSERT_FALSE(references.ok()) << wrong;
    EXPECT_EQ(references.error().code, ErrorCode::kCorrupt);
  }
}

TEST(References, AreRefusedWhereABytesOrThePackageIsAnother) {
  std::string text = reference_file(right_reference_body(), package().sha256);
  text[text.find("1.5") + 2] = '6';
  auto changed = parse_references(text, package(), "r.jsonl");
  ASSERT_FALSE(changed.ok());
  EXPECT_THAT(describe(changed.error()), HasSubstr("SHA-256"));
  changed = parse_references(reference_file(right_reference_body(), std::string(64, '0')),
                             package(), "r.jsonl");
  ASSERT_FALSE(changed.ok());
  EXPECT_THAT(describe(changed.error()), HasSubstr("another package.json"));
}

TEST(References, OfEarlierPackagesAreMissingAndSaidSo) {
  Package there = package();
  there.folder = std::filesystem::path(testing::TempDir()) /
                 ("motley-reference-" + std::to_string(::getpid()));
  std::filesystem::create_directories(there.folder);
  auto references = read_references(there);
  ASSERT_TRUE(references.ok());
  EXPECT_FALSE(references->has_value());
  EXPECT_THAT(*missing_references(there), HasSubstr("export the model again"));
  std::ofstream(there.folder / kReferenceFileName)
      << reference_file(right_reference_body(), there.sha256);
  EXPECT_EQ(*missing_references(there), "");
  std::filesystem::remove_all(there.folder);
}

// tests/python/reference_test.py has the same values.
TEST(HashedValues, AreThoseOfPython) {
  const HashedStream stream(7, StreamPurpose::kInput, 2);
  EXPECT_EQ(stream.bits(0), 10293285927963824005ULL);
  EXPECT_EQ(stream.bits(1'000'000), 16448075699051928533ULL);
  std::vector<float> values(4);
  fill_samples(values, {{2, UniformValues{-1.5F, 3.0F}}, {2, ListedValues{{0, 1, 5}}}}, stream);
  EXPECT_THAT(values, ElementsAre(0.17400044202804565F, 0.4364849925041199F, 5, 5));
  std::vector<std::int64_t> integers(16);
  fill_samples(integers, {{16, IntegersBelow{100}}}, stream, -7);
  EXPECT_THAT(integers, ElementsAre(5, 7, 17, 33, 52, 12, 73, 11, 97, 15, 46, 36, 34, 43, -7, 33));
  EXPECT_THAT(sampled_places(7, 1000, 4), ElementsAre(254, 935, 74, 687));
}

TEST(TensorDigest, TellsAboutHowFarTensorsAreApart) {
  constexpr std::size_t kCount = 10'000;
  std::vector<float> right(kCount);
  fill_uniform(right, {-1, 2}, HashedStream(1, StreamPurpose::kInput));
  const TensorDigest digest = digest_of(right, 3, 64);
  for (const double share : {1e-5, 1e-3, 0.1, 1.0}) {
    std::vector<float> noise(kCount);
    fill_uniform(noise, {-1, 2}, HashedStream(2, StreamPurpose::kInput));
    for (std::size_t i = 0; i < kCount; ++i) {
      noise[i] = right[i] + static_cast<float>(share) * noise[i];
    }
    const double apart = deviation(digest_of(noise, 3, 64), digest, 0);
    EXPECT_GT(apart, share / 3);
    EXPECT_LT(apart, share * 6);
  }
  EXPECT_EQ(deviation(digest, digest, 0), 0);
  std::vector<float> scaled = right;
  for (float& value : scaled) value *= 1.01F;
  EXPECT_GT(deviation(digest_of(scaled, 3, 64), digest, 0), 0.005);
}

}  // namespace
}  // namespace motley

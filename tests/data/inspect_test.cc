// What `motley data check` finds: the kind of data by its files, and what they hold.
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "data/inspect/data_facts.h"
#include "data/inspect/recognise.h"
#include "tests/data/array_fixture.h"
#include "tests/fuzz/token_laws.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Inspected : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) const {
    return folder_.write(name, bytes);
  }

  [[nodiscard]] std::string root() const { return folder_.root().string(); }

  [[nodiscard]] std::string kind(const std::string& path) const {
    const auto kind = recognise_data(path);
    return kind.ok() ? *kind : "refused: " + kind.error().cause;
  }

  [[nodiscard]] DataFacts facts(const std::string& path) const {
    ProgressCounter work;
    auto facts = inspect_data(data_config(kind(path), path), work);
    EXPECT_TRUE(facts.ok()) << (facts.ok() ? "" : describe(facts.error()));
    return facts.ok() ? *std::move(facts) : DataFacts();
  }

 private:
  DataFolder folder_;
};

TEST_F(Inspected, FilesAreRecognised) {
  EXPECT_EQ(kind(write("a.txt", "some text")), "text");
  EXPECT_EQ(kind(write("b.txt", std::string("\xFF\xFEh\0", 4))), "text");
  EXPECT_EQ(kind(write("a.bin", std::string("\1\0\2\0", 4))), "tokens");
  EXPECT_EQ(kind(write("b.bin", right_short_tokens())), "tokens");
  EXPECT_EQ(kind(write("a.npy", npy("<u2", {3}, std::vector<std::uint16_t>{1, 2, 3}))), "tokens");
  EXPECT_THAT(kind(write("b.npy", npy_floats({2, 2}, {1, 2, 3, 4}))), HasSubstr("[2, 2]"));
  EXPECT_THAT(kind(write("c.gz", "\x1f\x8b\x08 rest")), HasSubstr("gzip"));
  EXPECT_THAT(kind(write("empty", "")), HasSubstr("empty"));
  EXPECT_THAT(kind(write("d.dat", std::string("\0\1\2", 3))), HasSubstr("neither text"));
  EXPECT_EQ(recognise_data(root() + "/none").error().code, ErrorCode::kConfig);
}

TEST_F(Inspected, FoldersAreRecognised) {
  write("arrays/inputs.npy", npy_floats({1}, {1}));
  write("named/inputs.ids.npy", npy_floats({1}, {1}));
  write("tokens/train.bin", right_short_tokens());
  write("text/sub/a.md", "text");
  write("pictures/cat/a.png", "no picture yet");
  write("mnist/train-images-idx3-ubyte", "no image yet");
  write("cifar/data_batch_1.bin", "no image yet");
  write("cifar100/train.bin", std::string(3074, '\1'));
  write("cifar100/test.bin", std::string(3074, '\1'));
  write("none/a.dat", std::string("\0\1", 2));
  EXPECT_EQ(kind(root() + "/arrays"), "arrays");
  EXPECT_EQ(kind(root() + "/named"), "arrays");
  EXPECT_EQ(kind(root() + "/tokens"), "tokens");
  EXPECT_EQ(kind(root() + "/text"), "text");
  for (const char* name : {"/pictures", "/mnist", "/cifar", "/cifar100"}) {
    EXPECT_EQ(kind(root() + name), "images") << name;
  }
  EXPECT_THAT(kind(root() + "/none"), HasSubstr("no text below"));
}

TEST_F(Inspected, TokensHaveATypeANumberAndARange) {
  const auto found = facts(write("a.bin", right_short_tokens()));
  ASSERT_TRUE(found.tokens.has_value());
  EXPECT_EQ(found.tokens->dtype, "uint16");
  EXPECT_EQ(found.tokens->tokens, 3U);
  EXPECT_EQ(found.tokens->range.lowest, 1);
  EXPECT_EQ(found.tokens->range.highest, 3);
}

TEST_F(Inspected, TokensOfWhichMostAreZeroAreNamed) {
  std::vector<std::uint16_t> tokens(300);
  for (std::size_t i = 0; i < tokens.size(); i += 3) tokens[i] = static_cast<std::uint16_t>(i + 1);
  const auto found = facts(write("a.npy", npy("<u2", {300}, tokens)));
  EXPECT_THAT(found.remarks, ElementsAre(HasSubstr("200 of 300 tokens are 0")));
}

TEST_F(Inspected, ArraysHaveSamplesARangeAndClasses) {
  std::vector<float> inputs(40);
  std::vector<std::int64_t> targets(20);
  for (std::size_t i = 0; i < 40; ++i) inputs[i] = static_cast<float>(i) / 4;
  for (std::size_t i = 0; i < 20; ++i) targets[i] = i < 15 ? 2 : 5;
  write("inputs.npy", npy_floats({20, 2}, inputs));
  write("targets.npy", npy_longs({20}, targets));
  const auto found = facts(root());
  EXPECT_EQ(found.kind, "arrays");
  EXPECT_THAT(found.remarks, IsEmpty());
  ASSERT_EQ(found.columns.size(), 2U);
  EXPECT_EQ(found.columns[0].samples, 20U);
  EXPECT_EQ(found.columns[0].highest, 9.75);
  EXPECT_EQ(found.columns[1].classes, (std::map<std::int64_t, std::uint64_t>{{2, 15}, {5, 5}}));
}

TEST_F(Inspected, ArraysThatAreSuspiciousAreNamed) {
  std::vector<float> inputs(40, 0.5F);
  inputs[7] = std::numeric_limits<float>::quiet_NaN();
  write("inputs.npy", npy_floats({20, 2}, inputs));
  write("targets.npy", npy_longs({20}, std::vector<std::int64_t>(20, 3)));
  EXPECT_THAT(facts(root()).remarks,
              testing::UnorderedElementsAre(HasSubstr("there is only one class"),
                                            HasSubstr("1 of 40 values of the inputs are NaN")));
}

TEST_F(Inspected, ArraysOfTokensThatAreTheirTargetsAreNamed) {
  std::vector<std::int64_t> tokens(20 * 8);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int64_t>(i * 7 % 50);
  write("inputs.npy", npy_longs({20, 8}, tokens));
  write("targets.npy", npy_longs({20, 8}, tokens));
  EXPECT_THAT(facts(root()).remarks, ElementsAre(HasSubstr("the targets equal the inputs")));
}

TEST_F(Inspected, AConfigurationGivesEpochsAndSmallData) {
  Config config;
  config.data = data_config("arrays", root(), 0.25);
  config.train.steps = 10;
  config.train.global_batch = 32;
  config.train.eval_every = 1;
  std::vector<float> inputs(40);
  for (std::size_t i = 0; i < 40; ++i) inputs[i] = static_cast<float>(i) / 4;
  std::vector<std::int64_t> targets(20);
  for (std::size_t i = 0; i < 20; ++i) targets[i] = static_cast<std::int64_t>(i % 3);
  write("inputs.npy", npy_floats({20, 2}, inputs));
  write("targets.npy", npy_longs({20}, targets));
  ProgressCounter work;
  const auto checked = inspect_data(config, classifier({2}), work);
  ASSERT_TRUE(checked.ok()) << describe(checked.error());
  EXPECT_EQ(checked->training.train_samples, 15U);
  EXPECT_EQ(checked->training.eval_samples, 5U);
  EXPECT_DOUBLE_EQ(checked->training.epochs, 320.0 / 15);
  EXPECT_THAT(checked->facts.remarks,
              ElementsAre(HasSubstr("15 training samples are fewer than train.global_batch = 32"),
                          HasSubstr("5 held-out samples are fewer")));
  targets[3] = 10;
  write("targets.npy", npy_longs({20}, targets));
  const auto refused = inspect_data(config, classifier({2}), work);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().cause, HasSubstr("is 10; the model allows 0 to 9"));
}

TEST_F(Inspected, HeldOutColumnsAreThoseOfTheirOwnPath) {
  const auto write_part = [&](const std::string& prefix, std::int64_t count, float value) {
    const auto size = static_cast<std::size_t>(count);
    write(prefix + "inputs.npy", npy_floats({count, 1}, std::vector<float>(size, value)));
    write(prefix + "targets.npy", npy_longs({count}, std::vector<std::int64_t>(size, 1)));
  };
  write_part("train/", 4, 1);
  write_part("train/eval_", 3, 2);
  write_part("val/", 2, 3);
  Config config;
  config.data = data_config("arrays", root() + "/train");
  config.data.holdout_path = root() + "/val";
  config.train.steps = 1;
  config.train.global_batch = 1;
  ProgressCounter work;
  const auto checked = inspect_data(config, classifier({1}), work);
  ASSERT_TRUE(checked.ok()) << describe(checked.error());
  const auto& columns = checked->facts.columns;
  ASSERT_EQ(columns.size(), 4U);
  EXPECT_EQ(columns[0].samples, 4U);
  EXPECT_EQ(columns[2].role, "held-out inputs");
  EXPECT_EQ(columns[2].samples, 2U);
  EXPECT_EQ(columns[2].highest, 3);
}

TEST_F(Inspected, ArraysUnderOtherNamesAreNamedInTheError) {
  write("x_train.npy", npy_floats({1}, {1}));
  const Error error = open_error(data_config("arrays", root()), classifier({1}));
  EXPECT_THAT(error.what, HasSubstr("no array " + root() + "/inputs.npy"));
  EXPECT_EQ(error.cause, "it has x_train.npy");
  EXPECT_THAT(open_error(data_config("arrays", write("a.npy", "")), classifier({1})).cause,
              HasSubstr("not a readable folder"));
}

}  // namespace
}  // namespace motley

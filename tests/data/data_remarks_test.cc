// Remarks on data that is valid but probably not intended, and none on ordinary data.
#include "data/data_remarks.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <gmock/gmock.h>

#include "tests/data/array_fixture.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kSamples = 64;

// Pseudorandom numbers, from 0 to below a limit.
class Draw {
 public:
  std::uint32_t below(std::uint32_t limit) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>((state_ >> 33) % limit);
  }

  template <class T>
  std::vector<T> many(std::size_t count, std::uint32_t limit) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(below(limit));
    return values;
  }

  std::vector<float> normal(std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) {
      const double u = (below(1 << 20) + 0.5) / (1 << 20);
      const double v = (below(1 << 20) + 0.5) / (1 << 20);
      value = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
    }
    return values;
  }

 private:
  std::uint64_t state_ = 7;
};

SampleFormat rows_of_tokens(std::int64_t length, std::int64_t vocab) {
  SampleFormat format;
  format.target = {Dtype::kInt64, {length}};
  format.target_limit = vocab;
  format.inputs = {{"", format.target, vocab}};
  format.ignored_target = -100;
  return format;
}

SampleFormat regression(std::vector<std::int64_t> inputs, std::int64_t targets) {
  SampleFormat format;
  format.inputs = {{"", {Dtype::kFloat32, std::move(inputs)}, {}}};
  format.target = {Dtype::kFloat32, {targets}};
  return format;
}

class Remarks : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    folder_.write(name + ".npy", bytes);
  }

  [[nodiscard]] DataConfig data() const { return data_config("arrays", folder_.root()); }

  [[nodiscard]] std::vector<std::string> of(const SampleFormat& format) const {
    const auto source = opened(data(), format);
    return source == nullptr ? std::vector<std::string>{"it was refused"} : source->remarks();
  }

  Draw draw_;

 private:
  DataFolder folder_;
};

TEST_F(Remarks, AreNoneOfImages) {
  write("inputs", npy_bytes({kSamples, 8, 8}, draw_.many<std::uint8_t>(kSamples * 64, 256)));
  write("targets", npy_longs({kSamples}, draw_.many<std::int64_t>(kSamples, 10)));
  EXPECT_THAT(of(classifier({1, 8, 8})), IsEmpty());
}

TEST_F(Remarks, AreNoneOfRowsOfTokens) {
  auto inputs = draw_.many<std::int64_t>(kSamples * 8, 50);
  auto targets = draw_.many<std::int64_t>(kSamples * 8, 50);
  write("inputs", npy_longs({kSamples, 8}, inputs));
  write("targets", npy_longs({kSamples, 8}, targets));
  EXPECT_THAT(of(rows_of_tokens(8, 50)), IsEmpty());
  // Masked tokens: the targets of other tokens are ignored.
  for (std::size_t k = 0; k < targets.size(); ++k) {
    targets[k] = k % 5 == 0 ? inputs[k] : -100;
    if (k % 5 == 0) inputs[k] = 49;
  }
  write("inputs", npy_longs({kSamples, 8}, inputs));
  write("targets", npy_longs({kSamples, 8}, targets));
  EXPECT_THAT(of(rows_of_tokens(8, 50)), IsEmpty());
}

// Ten different inputs that repeat, each with its own target.
TEST_F(Remarks, AreNoneOfOneHotInputsNorOfAnAutoencoder) {
  std::vector<float> inputs(kSamples * 10);
  std::vector<float> targets(kSamples);
  for (std::size_t i = 0; i < kSamples; ++i) {
    inputs[i * 10 + i % 10] = 1;
    targets[i] = static_cast<float>(i % 10) / 3;
  }
  write("inputs", npy_floats({kSamples, 10}, inputs));
  write("targets", npy_floats({kSamples, 1}, targets));
  EXPECT_THAT(of(regression({10}, 1)), IsEmpty());
  write("targets", npy_floats({kSamples, 10}, inputs));
  EXPECT_THAT(of(regression({10}, 10)), IsEmpty());
}

// Counts and years are integers, but not images.
TEST_F(Remarks, AreNoneOfTables) {
  std::vector<float> inputs;
  for (const auto value : draw_.many<std::uint32_t>(kSamples * 4, 250)) {
    inputs.push_back(static_cast<float>(value));
  }
  write("inputs", npy_floats({kSamples, 4}, inputs));
  write("targets", npy_longs({kSamples}, draw_.many<std::int64_t>(kSamples, 2)));
  EXPECT_THAT(of(classifier({4}, 2)), IsEmpty());
}

TEST_F(Remarks, TellTargetsThatAreTheInputs) {
  const auto inputs = draw_.many<std::int64_t>(kSamples * 8, 50);
  write("inputs", npy_longs({kSamples, 8}, inputs));
  auto targets = inputs;
  write("targets",
        npy("<i4", {kSamples, 8}, std::vector<std::int32_t>(targets.begin(), targets.end())));
  EXPECT_THAT(of(rows_of_tokens(8, 50)),
              ElementsAre(testing::AllOf(HasSubstr("the targets equal the inputs"),
                                         HasSubstr("targets.npy"))));
  for (std::size_t k = 0; k < targets.size(); ++k) {
    if (k % 8 < 3) targets[k] = -100;  // of a prompt
  }
  write("targets", npy_longs({kSamples, 8}, targets));
  EXPECT_THAT(of(rows_of_tokens(8, 50)), ElementsAre(HasSubstr("the targets equal the inputs")));
  targets[60 * 8 + 7] = (targets[60 * 8 + 7] + 1) % 50;
  write("targets", npy_longs({kSamples, 8}, targets));
  EXPECT_THAT(of(rows_of_tokens(8, 50)), IsEmpty());
}

TEST_F(Remarks, CountSamplesWithoutTargets) {
  auto targets = draw_.many<std::int64_t>(kSamples * 8, 50);
  std::fill(targets.begin(), targets.begin() + 20 * 8, -100);
  write("inputs", npy_longs({kSamples, 8}, draw_.many<std::int64_t>(kSamples * 8, 50)));
  write("targets", npy_longs({kSamples, 8}, targets));
  EXPECT_THAT(of(rows_of_tokens(8, 50)), ElementsAre(HasSubstr("20 of 64 samples have no target")));
}

TEST_F(Remarks, TellDataOfOneKind) {
  write("inputs", npy_floats({kSamples, 4}, draw_.normal(kSamples * 4)));
  write("targets", npy_longs({kSamples}, std::vector<std::int64_t>(kSamples, 3)));
  EXPECT_THAT(of(classifier({4})), ElementsAre(HasSubstr("all targets are 3")));
  write("targets", npy_floats({kSamples, 1}, std::vector<float>(kSamples, 0.5F)));
  EXPECT_THAT(of(regression({4}, 1)), ElementsAre(HasSubstr("the same target, ")));
  write("inputs", npy_floats({kSamples, 4}, std::vector<float>(kSamples * 4)));
  write("targets", npy_longs({kSamples}, draw_.many<std::int64_t>(kSamples, 10)));
  EXPECT_THAT(of(classifier({4})), ElementsAre(HasSubstr("the same input, zeros, ")));
}

TEST_F(Remarks, TellPixelsThatNobodyScaled) {
  std::vector<float> pixels;
  for (const auto value : draw_.many<std::uint32_t>(kSamples * 64, 256)) {
    pixels.push_back(static_cast<float>(value));
  }
  write("inputs", npy_floats({kSamples, 8, 8}, pixels));
  write("targets", npy_longs({kSamples}, draw_.many<std::int64_t>(kSamples, 10)));
  EXPECT_THAT(of(classifier({8, 8})), ElementsAre(HasSubstr("integers up to 255")));
  DataConfig scaled = data();
  scaled.mean = scaled.std = {128};
  EXPECT_THAT(opened(scaled, classifier({8, 8}))->remarks(), IsEmpty());
  write("inputs", npy_bytes({kSamples, 8, 8}, draw_.many<std::uint8_t>(kSamples * 64, 2)));
  EXPECT_THAT(of(classifier({8, 8})), ElementsAre(HasSubstr("bytes of 0 and 1")));
}

TEST_F(Remarks, TellHeldOutSamplesThatAreTrainedOn) {
  const auto inputs = draw_.normal(kSamples * 16);
  const auto labels = draw_.many<std::int64_t>(kSamples, 10);
  write("inputs", npy_floats({kSamples, 16}, inputs));
  write("targets", npy_longs({kSamples}, labels));
  write("eval_inputs", npy_floats({32, 16}, {inputs.begin(), inputs.begin() + 32 * 16}));
  write("eval_targets", npy_longs({32}, {labels.begin(), labels.begin() + 32}));
  EXPECT_THAT(of(classifier({16})), ElementsAre(HasSubstr("32 of 32 held-out samples")));
  write("eval_inputs", npy_floats({32, 16}, draw_.normal(32 * 16)));
  EXPECT_THAT(of(classifier({16})), IsEmpty());
}

TEST_F(Remarks, TellEveryOtherTokenThatIsZero) {
  std::vector<std::uint16_t> tokens = draw_.many<std::uint16_t>(4096, 500);
  for (std::size_t i = 1; i < tokens.size(); i += 2) tokens[i] = 0;
  DataFolder folder;
  DataConfig config = data_config("tokens", folder.write("t.bin", bytes_of(tokens)));
  config.dtype = "uint16";
  EXPECT_THAT(opened(config, model_config(8, 500))->remarks(),
              ElementsAre(HasSubstr("every second one of the first")));
}

TEST_F(Remarks, AreRefusalsOfNumbersThatAreNone) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF, -HUGE_VALF}) {
    auto inputs = draw_.normal(kSamples * 4);
    inputs[9 * 4 + 2] = bad;
    inputs[30 * 4] = bad;
    write("inputs", npy_floats({kSamples, 4}, inputs));
    write("targets", npy_longs({kSamples}, draw_.many<std::int64_t>(kSamples, 10)));
    const Error error = open_error(data(), classifier({4}));
    EXPECT_EQ(error.code, ErrorCode::kData);
    EXPECT_THAT(error.what, HasSubstr("inputs.npy"));
    EXPECT_THAT(error.cause, HasSubstr("number 2 of sample 9 is "));
    EXPECT_THAT(error.cause, HasSubstr("2 of 64 samples"));
    DataConfig allowed = data();
    allowed.allow_nonfinite = true;
    EXPECT_NE(opened(allowed, classifier({4})), nullptr);
  }
  write("inputs", npy_floats({kSamples, 4}, draw_.normal(kSamples * 4)));
  auto targets = draw_.normal(kSamples);
  targets[5] = -HUGE_VALF;
  write("targets", npy_floats({kSamples, 1}, targets));
  EXPECT_THAT(open_error(data(), regression({4}, 1)).cause,
              HasSubstr("number 0 of sample 5 is -infinity"));
  write("targets", npy_floats({kSamples, 1}, draw_.normal(kSamples)));
  write("eval_inputs", npy_floats({1, 4}, {0, 0, HUGE_VALF, 0}));
  write("eval_targets", npy_floats({1, 1}, {0}));
  EXPECT_THAT(open_error(data(), regression({4}, 1)).what, HasSubstr("eval_inputs.npy"));
}

TEST_F(Remarks, AreARefusalWhereThereIsNoTarget) {
  write("inputs", npy_longs({kSamples, 8}, draw_.many<std::int64_t>(kSamples * 8, 50)));
  write("targets", npy_longs({kSamples, 8}, std::vector<std::int64_t>(kSamples * 8, -100)));
  const Error error = open_error(data(), rows_of_tokens(8, 50));
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_THAT(error.what, HasSubstr("no targets, "));
}

}  // namespace
}  // namespace motley

// Arrays as data sources: their samples, and the errors for arrays that do not fit.
#include <gmock/gmock.h>

#include "base/progress_counter.h"
#include "tests/data/array_fixture.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A folder of arrays. By default two images of 1 × 2 pixels with labels; tests overwrite single
// files.
class Arrays : public testing::Test {
 protected:
  Arrays() {
    write("inputs", npy_bytes({2, 1, 2}, {0, 255, 51, 102}));
    write("targets", npy_longs({2}, {3, 4}));
  }

  void write(const std::string& name, const std::string& bytes) const {
    folder_.write(name + ".npy", bytes);
  }

  [[nodiscard]] DataConfig data(double holdout = 0) const {
    return data_config("arrays", folder_.root(), holdout);
  }

  // The samples of the first epoch, sorted by their targets.
  [[nodiscard]] std::vector<Sample> all(const DataConfig& data, const SampleFormat& format) const {
    const auto source = opened(data, format);
    std::vector<Sample> samples;
    for (std::uint64_t i = 0; source != nullptr && i < source->train_samples(); ++i) {
      samples.push_back(train_sample(*source, i, format));
    }
    std::ranges::sort(samples, {}, &Sample::targets);
    return samples;
  }

  [[nodiscard]] Error error_of(const SampleFormat& format) const {
    const Error error = open_error(data(), format);
    EXPECT_EQ(error.code, ErrorCode::kData);
    return error;
  }

  const SampleFormat pixels_ = classifier({1, 2});

 private:
  DataFolder folder_;
};

TEST_F(Arrays, OfBytesBecomeFloatsFromZeroToOne) {
  const auto samples = all(data(), pixels_);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_THAT(floats_of(samples[0].inputs), ElementsAre(0.0F, 1.0F));
  EXPECT_THAT(floats_of(samples[1].inputs), ElementsAre(51.0F / 255, 102.0F / 255));
  EXPECT_THAT(samples[0].targets, ElementsAre(3));
  EXPECT_THAT(samples[1].targets, ElementsAre(4));
}

TEST_F(Arrays, OfFloatsStayToTheBit) {
  write("inputs", npy_floats({2, 2}, {0.1F, -2.5F, 1e-30F, 7}));
  write("targets", npy_floats({2, 1}, {0.5F, 1.5F}));
  SampleFormat format = classifier({2});
  format.target = {Dtype::kFloat32, {1}};
  const auto samples = all(data(), format);
  EXPECT_THAT(floats_of(samples[0].inputs), ElementsAre(0.1F, -2.5F));
  EXPECT_THAT(floats_of(samples[1].inputs), ElementsAre(1e-30F, 7));
  EXPECT_THAT(floats_of(samples[1].targets), ElementsAre(1.5F));
}

TEST_F(Arrays, OfIntegersStayWhatTheyAre) {
  SampleFormat format = classifier({2}, 300);
  format.inputs.front() = {"", {Dtype::kInt64, {2}}, 256};
  EXPECT_THAT(all(data(), format)[0].inputs, ElementsAre(0, 255));
  write("inputs", npy("<i4", {2, 2}, std::vector<std::int32_t>{5, 6, 7, 8}));
  EXPECT_THAT(all(data(), format)[1].inputs, ElementsAre(7, 8));
  write("inputs", npy_longs({2, 2}, {9, 10, 11, 12}));
  EXPECT_THAT(all(data(), format)[1].inputs, ElementsAre(11, 12));
}

TEST_F(Arrays, AreNormalisedByChannel) {
  write("inputs", npy_bytes({2, 2, 1}, {255, 255, 51, 0}));
  DataConfig config = data();
  config.mean = {0.5, 0.25};
  config.std = {0.5, 0.125};
  const auto samples = all(config, classifier({2, 1}));
  EXPECT_THAT(floats_of(samples[0].inputs), ElementsAre(1.0F, 6.0F));
  EXPECT_THAT(floats_of(samples[1].inputs), ElementsAre((51.0F / 255 - 0.5F) / 0.5F, -2.0F));
}

TEST_F(Arrays, OfFloatsAreNormalisedByOneNumberForAll) {
  write("inputs", npy_floats({2, 2}, {1, 2, 3, 4}));
  DataConfig config = data();
  config.mean = {1};
  config.std = {2};
  EXPECT_THAT(floats_of(all(config, classifier({2}))[1].inputs), ElementsAre(1.0F, 1.5F));
}

TEST_F(Arrays, FitAShapeThatDiffersInOnesAlone) {
  EXPECT_EQ(all(data(), classifier({2})).size(), 2U);
  EXPECT_EQ(all(data(), classifier({1, 1, 2, 1})).size(), 2U);
}

TEST_F(Arrays, WithWhatTheLossIgnoresAreTaken) {
  write("targets", npy_longs({2}, {-100, 4}));
  EXPECT_THAT(error_of(pixels_).cause, HasSubstr("number 0 of sample 0 is -100"));
  SampleFormat format = pixels_;
  format.ignored_target = -100;
  EXPECT_THAT(all(data(), format)[0].targets, ElementsAre(-100));
}

TEST_F(Arrays, OutsideOfTheModelsLimitsAreRefused) {
  const Error label = error_of(classifier({1, 2}, 4));
  EXPECT_THAT(label.what, HasSubstr("targets.npy"));
  EXPECT_THAT(label.cause, HasSubstr("number 0 of sample 1 is 4; the model allows 0 to 3"));
  EXPECT_THAT(label.remedy, HasSubstr("use a model with 5 values"));
  SampleFormat tokens = classifier({2});
  tokens.inputs.front() = {"", {Dtype::kInt64, {2}}, 102};
  EXPECT_THAT(error_of(tokens).cause, HasSubstr("number 1 of sample 0 is 255"));
  // Samples are passed as 32-bit integers.
  write("inputs", npy_longs({2, 2}, {0, 0, 0, std::int64_t{1} << 31}));
  tokens.inputs.front().limit = std::int64_t{1} << 40;
  EXPECT_THAT(error_of(tokens).cause, HasSubstr("is 2147483648"));
}

TEST_F(Arrays, HeldOutAreCheckedToo) {
  write("eval_inputs", npy_bytes({1, 1, 2}, {1, 2}));
  write("eval_targets", npy_longs({1}, {10}));
  EXPECT_THAT(error_of(pixels_).what, HasSubstr("eval_targets.npy"));
}

TEST_F(Arrays, AreCountedWhileTheyAreRead) {
  ProgressCounter work;
  ASSERT_TRUE(open_source(data(), pixels_, 1, &work).ok());
  EXPECT_GT(work.count(), 0U);
}

TEST_F(Arrays, OfAnotherShapeAreRefusedWithBothShapes) {
  const Error error = error_of(classifier({3, 2}));
  EXPECT_THAT(error.what, HasSubstr("inputs.npy"));
  EXPECT_EQ(error.cause, "one input is [1, 2] of uint8; the model needs [3, 2] of float32");
  write("targets", npy_longs({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(error_of(pixels_).cause, "one target is [2] of int64; the model needs [] of integers");
}

TEST_F(Arrays, OfAnotherShapeThanAModelOfTokensSaysWhatCutsTokens) {
  EXPECT_THAT(error_of(format_of(model_config(8))).remedy, HasSubstr("data.kind = \"text\""));
}

TEST(TokenData, IsRefusedByAModelOfOtherThings) {
  for (const char* kind : {"text", "tokens"}) {
    const Error error = open_error(data_config(kind, "any"), classifier({2}));
    EXPECT_EQ(error.code, ErrorCode::kConfig);
    EXPECT_THAT(error.what, HasSubstr(kind));
    EXPECT_THAT(error.remedy, HasSubstr("\"arrays\" or \"images\""));
  }
}

TEST_F(Arrays, OfAnotherTypeAreRefused) {
  write("targets", npy_floats({2}, {1, 2}));
  EXPECT_THAT(error_of(pixels_).remedy, HasSubstr("astype('int64')"));
  SampleFormat regression = pixels_;
  regression.target.type = Dtype::kFloat32;
  write("targets", npy_bytes({2}, {1, 2}));
  EXPECT_THAT(error_of(regression).remedy, HasSubstr("astype('float32')"));
}

TEST_F(Arrays, OfRowsOfTokensTrainAModelOfTokens) {
  write("inputs", npy_longs({2, 3}, {1, 2, 3, 4, 5, 6}));
  write("targets", npy_longs({2, 3}, {2, 3, 4, 5, 6, 7}));
  const auto samples = all(data(), format_of(model_config(3)));
  EXPECT_THAT(samples[1].inputs, ElementsAre(4, 5, 6));
}

TEST_F(Arrays, ThatDoNotGoTogetherAreRefused) {
  write("targets", npy_longs({3}, {1, 2, 3}));
  EXPECT_EQ(error_of(pixels_).cause, "2 inputs and 3 targets");
  write("targets", npy_longs({2}, {1, 2}));
  write("eval_inputs", npy_bytes({1, 2, 1}, {1, 2}));
  write("eval_targets", npy_longs({1}, {1}));
  EXPECT_EQ(error_of(pixels_).cause, "their samples are [1, 2] of uint8 and [2, 1] of uint8");
  write("eval_inputs", npy_bytes({1, 1, 2}, {1, 2}));
  write("eval_targets", npy_bytes({1}, {1}));
  EXPECT_EQ(error_of(pixels_).cause, "their samples are [] of int64 and [] of uint8");
}

TEST_F(Arrays, ThatAreMissingAreNamed) {
  write("eval_inputs", npy_bytes({1, 1, 2}, {1, 2}));
  EXPECT_THAT(error_of(pixels_).what, HasSubstr("eval_targets.npy"));
  EXPECT_THAT(open_error(data_config("arrays", "/none"), pixels_).what,
              HasSubstr("/none/inputs.npy"));
  EXPECT_THAT(open_error(data_config("arrays", ""), pixels_).what, HasSubstr("data.path"));
}

TEST_F(Arrays, WithoutSamplesAreRefused) {
  write("inputs", npy_bytes({0, 1, 2}, {}));
  EXPECT_THAT(error_of(pixels_).what, HasSubstr("no samples"));
  write("inputs", npy_longs({}, {1}));
  EXPECT_THAT(error_of(pixels_).what, HasSubstr("no samples"));
}

TEST_F(Arrays, TooFewToHoldOneOutAreRefused) {
  EXPECT_THAT(open_error(data(0.1), pixels_).cause, HasSubstr("of 2 samples is not one"));
}

TEST_F(Arrays, ThatDoNotFitTheirNormalisationAreRefused) {
  DataConfig config = data();
  config.mean = config.std = {1, 1, 1};
  EXPECT_THAT(open_error(config, pixels_).cause, HasSubstr("3 numbers for 1 channels"));
  SampleFormat tokens = classifier({2});
  tokens.inputs.front() = {"", {Dtype::kInt64, {2}}, 256};
  EXPECT_THAT(open_error(config, tokens).cause, HasSubstr("integers"));
}

TEST_F(Arrays, AreToldFromOthersByAnyOfThem) {
  const auto identity = [&] { return opened(data(), pixels_)->identity(); };
  const DataIdentity before = identity();
  EXPECT_EQ(before, identity());
  EXPECT_EQ(before.bytes, 4U + 16U);
  write("targets", npy_longs({2}, {3, 5}));
  const DataIdentity other = identity();
  EXPECT_NE(other, before);
  write("eval_inputs", npy_bytes({1, 1, 2}, {1, 2}));
  write("eval_targets", npy_longs({1}, {1}));
  EXPECT_NE(identity(), other);
}

}  // namespace
}  // namespace motley

// Samples with several inputs by name: their files, their words and their checks.
#include <limits>
#include <optional>
#include <set>

#include <gmock/gmock.h>

#include "data/synthetic_samples.h"
#include "tests/data/array_fixture.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Lt;

// An image with ids and a mask.
SampleFormat image_and_ids() {
  SampleFormat format;
  format.inputs = {{"input_ids", {Dtype::kInt64, {3}}, 100},
                   {"attention_mask", {Dtype::kBool, {3}}, {}},
                   {"pixel_values", {Dtype::kFloat32, {1, 1, 2}}, {}}};
  format.target = {Dtype::kInt64, {}};
  format.target_limit = 4;
  return format;
}

std::string shorts(const std::vector<std::int64_t>& shape,
                   const std::vector<std::int16_t>& values) {
  return npy("<i2", shape, values);
}

std::string truths(const std::vector<std::int64_t>& shape,
                   const std::vector<std::uint8_t>& values) {
  return npy("|b1", shape, values);
}

template <class T>
std::vector<T> part(const std::vector<T>& words, std::size_t first, std::size_t count) {
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

class NamedInputs : public testing::Test {
 protected:
  NamedInputs() { write_part("", {7, 8, 9, 10, 11, 12}); }

  // Two samples.
  void write_part(const std::string& prefix, const std::vector<std::int16_t>& ids) const {
    write(prefix + "inputs.input_ids", shorts({2, 3}, ids));
    write(prefix + "inputs.attention_mask", truths({2, 3}, {1, 1, 0, 1, 0, 0}));
    write(prefix + "inputs.pixel_values", npy_bytes({2, 1, 1, 2}, {0, 255, 51, 102}));
    write(prefix + "targets", npy_longs({2}, {0, 1}));
  }

  void write(const std::string& name, const std::string& bytes) const {
    folder_.write(name + ".npy", bytes);
  }

  void remove(const std::string& name) const {
    std::filesystem::remove(folder_.root() / (name + ".npy"));
  }

  [[nodiscard]] DataConfig data() const { return data_config("arrays", folder_.root()); }

  // Both samples, by their targets.
  [[nodiscard]] std::vector<Sample> all(const DataConfig& data, const SampleFormat& format) const {
    const auto source = opened(data, format);
    std::vector<Sample> samples;
    for (std::uint64_t i = 0; source != nullptr && i < 2; ++i) {
      samples.push_back(train_sample(*source, i, format));
    }
    std::ranges::sort(samples, {}, &Sample::targets);
    return samples;
  }

  [[nodiscard]] Error error_of(const SampleFormat& format) const {
    const Error error = open_error(data(), format);
    EXPECT_EQ(error.code, ErrorCode::kData) << describe(error);
    return error;
  }

  DataFolder folder_;
};

TEST_F(NamedInputs, FollowEachOtherInTheModelsOrder) {
  const std::vector<Sample> samples = all(data(), image_and_ids());
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_THAT(part(samples[0].inputs, 0, 6), ElementsAre(7, 8, 9, 1, 1, 0));
  EXPECT_THAT(part(samples[1].inputs, 0, 6), ElementsAre(10, 11, 12, 1, 0, 0));
  const std::vector<float> floats = floats_of(samples[1].inputs);
  EXPECT_THAT(part(floats, 6, 2), ElementsAre(51.0F / 255, 102.0F / 255));
  SampleFormat other = image_and_ids();
  std::swap(other.inputs[0], other.inputs[1]);
  EXPECT_THAT(part(all(data(), other)[1].inputs, 0, 6), ElementsAre(1, 0, 0, 10, 11, 12));
}

TEST_F(NamedInputs, MayBeStoredInAnyIntegerType) {
  const std::vector<Sample> expected = all(data(), image_and_ids());
  write("inputs.input_ids", npy("|i1", {2, 3}, std::vector<std::int8_t>{7, 8, 9, 10, 11, 12}));
  write("inputs.attention_mask", npy_longs({2, 3}, {1, 1, 0, 1, 0, 0}));
  EXPECT_EQ(all(data(), image_and_ids()), expected);
  write("inputs.input_ids", npy("<i4", {2, 3}, std::vector<std::int32_t>{7, 8, 9, 10, 11, 12}));
  write("inputs.attention_mask", npy_bytes({2, 3}, {1, 1, 0, 1, 0, 0}));
  EXPECT_EQ(all(data(), image_and_ids()), expected);
}

TEST_F(NamedInputs, HaveHeldOutSamplesOfTheirOwn) {
  write_part("eval_", {1, 2, 3, 4, 5, 6});
  const auto source = opened(data(), image_and_ids());
  EXPECT_EQ(source->train_samples(), 2U);
  EXPECT_EQ(source->eval_samples(), 2U);
  const Sample second = eval_sample(*source, 1, image_and_ids());
  EXPECT_THAT(part(second.inputs, 0, 6), ElementsAre(4, 5, 6, 1, 0, 0));
  write("eval_inputs.attention_mask", npy_bytes({2, 3}, {1, 1, 0, 1, 0, 0}));
  const Error error = error_of(image_and_ids());
  EXPECT_THAT(error.what,
              HasSubstr("inputs.attention_mask.npy and eval_inputs.attention_mask.npy"));
  EXPECT_THAT(error.cause, HasSubstr("[3] of bool and [3] of uint8"));
}

TEST_F(NamedInputs, OfAnIncompleteHeldOutPartAreRefused) {
  write("eval_inputs.pixel_values", npy_bytes({1, 1, 1, 2}, {0, 255}));
  EXPECT_THAT(describe(error_of(image_and_ids())), HasSubstr("eval_inputs.input_ids.npy"));
}

TEST_F(NamedInputs, ThatAreMissingAreRefused) {
  remove("inputs.attention_mask");
  EXPECT_THAT(describe(error_of(image_and_ids())), HasSubstr("inputs.attention_mask.npy"));
  write("inputs", npy_longs({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Error error = error_of(image_and_ids());
  EXPECT_THAT(error.what, HasSubstr("no inputs.attention_mask.npy"));
  EXPECT_THAT(error.cause, HasSubstr("input_ids, attention_mask, pixel_values"));
}

TEST_F(NamedInputs, OfAnotherNumberOfSamplesAreRefused) {
  write("inputs.attention_mask", truths({1, 3}, {1, 1, 0}));
  const Error error = error_of(image_and_ids());
  EXPECT_THAT(error.what, HasSubstr("inputs.attention_mask.npy and targets.npy do not match"));
  EXPECT_THAT(error.cause, HasSubstr("1 inputs and 2 targets"));
}

TEST_F(NamedInputs, OfAnotherShapeOrTypeAreRefused) {
  write("inputs.attention_mask", truths({2, 2}, {1, 1, 0, 1}));
  EXPECT_THAT(error_of(image_and_ids()).what, HasSubstr("inputs.attention_mask.npy"));
  EXPECT_THAT(error_of(image_and_ids()).cause, HasSubstr("[3] of truth values"));
  write("inputs.attention_mask", npy_floats({2, 3}, {1, 1, 0, 1, 0, 0}));
  EXPECT_THAT(error_of(image_and_ids()).remedy, HasSubstr("astype('bool')"));
  write("inputs.attention_mask", truths({2, 3}, {1, 1, 0, 1, 0, 0}));
  write("inputs.pixel_values", truths({2, 1, 1, 2}, {1, 1, 0, 1}));
  EXPECT_THAT(error_of(image_and_ids()).remedy, HasSubstr("astype('float32')"));
}

TEST_F(NamedInputs, OutsideOfTheirLimitsAreRefusedWithTheirPlace) {
  write("inputs.input_ids", shorts({2, 3}, {7, 8, 9, 10, -1, 12}));
  const Error error = error_of(image_and_ids());
  EXPECT_THAT(error.what, HasSubstr("inputs.input_ids.npy"));
  EXPECT_THAT(error.cause, HasSubstr("number 1 of sample 1 is -1; the model allows 0 to 99"));
}

// Without a limit integers may have any 32 bits, negative ones too.
TEST_F(NamedInputs, WithoutALimitHaveThirtyTwoBits) {
  SampleFormat format = image_and_ids();
  format.inputs[0].limit = std::nullopt;
  write("inputs.input_ids", npy_longs({2, 3}, {-1, -2147483648, 2147483647, 0, 0, 0}));
  EXPECT_THAT(part(all(data(), format)[0].inputs, 0, 3), ElementsAre(-1, -2147483648, 2147483647));
  write("inputs.input_ids", npy_longs({2, 3}, {0, 0, 0, 2147483648, 0, 0}));
  EXPECT_THAT(error_of(format).cause, HasSubstr("number 0 of sample 1 is 2147483648"));
}

TEST_F(NamedInputs, OfTruthValuesAreZeroOrOne) {
  write("inputs.attention_mask", truths({2, 3}, {1, 1, 0, 1, 2, 0}));
  EXPECT_THAT(error_of(image_and_ids()).cause, HasSubstr("number 1 of sample 1 is 2"));
  write("inputs.attention_mask", npy_longs({2, 3}, {1, 1, 0, 1, -1, 0}));
  EXPECT_THAT(error_of(image_and_ids()).cause, HasSubstr("is -1; the model allows 0 to 1"));
  // In a file of truth values other bytes are damage, whatever the model takes.
  write("inputs.attention_mask", truths({2, 3}, {1, 1, 0, 1, 0, 0}));
  write("inputs.input_ids", truths({2, 3}, {0, 1, 0, 1, 7, 0}));
  EXPECT_THAT(error_of(image_and_ids()).cause, HasSubstr("number 1 of sample 1 is 7"));
}

TEST_F(NamedInputs, ThatAreNotFiniteAreRefusedWithTheirPlace) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  write("inputs.pixel_values", npy_floats({2, 1, 1, 2}, {0, 1, 2, nan}));
  const Error error = error_of(image_and_ids());
  EXPECT_THAT(error.what, HasSubstr("inputs.pixel_values.npy"));
  EXPECT_THAT(error.cause, HasSubstr("number 1 of sample 1 is NaN"));
}

TEST_F(NamedInputs, AreNormalisedAndAugmentedIfOneIsOfFloats) {
  DataConfig config = data();
  config.mean = {0.5};
  config.std = {0.25};
  const std::vector<float> floats = floats_of(all(config, image_and_ids())[0].inputs);
  EXPECT_THAT(part(floats, 6, 2), ElementsAre(-2.0F, 2.0F));
  config.augment = {"flip"};
  const auto source = opened(config, image_and_ids());
  std::set<std::vector<std::int32_t>> seen;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Sample sample = train_sample(*source, i, image_and_ids());
    if (sample.targets[0] != 1) continue;
    EXPECT_THAT(part(sample.inputs, 0, 6), ElementsAre(10, 11, 12, 1, 0, 0));
    seen.insert(sample.inputs);
  }
  EXPECT_EQ(seen.size(), 2U);
  SampleFormat format = image_and_ids();
  format.inputs[1].tensor.type = Dtype::kFloat32;
  write("inputs.attention_mask", npy_floats({2, 3}, {1, 1, 0, 1, 0, 0}));
  EXPECT_EQ(open_error(config, format).key, "data.mean");
  config.mean = config.std = {};
  EXPECT_EQ(open_error(config, format).key, "data.augment");
}

TEST_F(NamedInputs, AreForArraysOnly) {
  for (const char* const kind : {"images", "text", "tokens"}) {
    const Error error = open_error(data_config(kind, folder_.root()), image_and_ids());
    EXPECT_EQ(error.code, ErrorCode::kConfig) << kind;
    EXPECT_EQ(error.key, "data.kind") << kind;
  }
}

TEST_F(NamedInputs, AreToldFromOthersByAnyOfThem) {
  const auto identity = [&] { return opened(data(), image_and_ids())->identity(); };
  const DataIdentity before = identity();
  write("inputs.attention_mask", truths({2, 3}, {1, 1, 0, 1, 0, 1}));
  EXPECT_NE(identity(), before);
  EXPECT_EQ(identity().bytes, before.bytes);
}

// As they were written by NumPy, and the fingerprint that checkpoints of runs with them have.
TEST(NamedInputsGolden, AreReadAsWritten) {
  SampleFormat format = image_and_ids();
  format.inputs.push_back({"token_type_ids", {Dtype::kInt64, {3}}, 2});
  const auto source = opened(data_config("arrays", MOTLEY_GOLDEN "/named_inputs"), format);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->identity().bytes, 2 * (3 * 2 + 3 + 2 * 4 + 3) + 16 + 6 + 3 + 8 + 3 + 8);
  EXPECT_EQ(source->identity().hash, "95707153c8193caf28554ccfa52f6020");
  const Sample held_out = eval_sample(*source, 0, format);
  EXPECT_THAT(part(held_out.inputs, 0, 6), ElementsAre(13, 14, 15, 1, 1, 1));
  EXPECT_THAT(part(held_out.inputs, 8, 3), ElementsAre(0, 1, 1));
  const std::vector<float> floats = floats_of(held_out.inputs);
  EXPECT_THAT(part(floats, 6, 2), ElementsAre(0.5F, -1.25F));
  EXPECT_THAT(held_out.targets, ElementsAre(3));
}

TEST(SyntheticSamplesByName, HaveWordsOfEachInput) {
  SampleFormat format = image_and_ids();
  format.inputs[0].tensor.shape = {64};
  format.inputs[2].tensor.shape = {500};
  format.inputs.push_back({"other_ids", {Dtype::kInt64, {64}}, 100});
  const auto source = make_synthetic_samples(0, format, 1);
  const Sample sample = train_sample(*source, 0, format);
  EXPECT_THAT(part(sample.inputs, 64, 3), Each(1));
  EXPECT_THAT(part(sample.inputs, 0, 64), Each(AllOf(Ge(0), Lt(100))));
  // They follow the same class, each with exceptions of its own.
  EXPECT_EQ(sample.inputs[0], sample.inputs[567]);
  EXPECT_NE(part(sample.inputs, 0, 64), part(sample.inputs, 567, 64));
  float sum = 0;
  for (const float x : part(floats_of(sample.inputs), 67, 500)) sum += x * x;
  EXPECT_NEAR(sum / 500, 2, 0.5);  // noise and a pattern of variance 1 each
  const SampleFormat alone = classifier({500}, 4);
  const auto of_one = make_synthetic_samples(0, alone, 1);
  EXPECT_EQ(train_sample(*of_one, 0, alone).targets, sample.targets);
}

}  // namespace
}  // namespace motley

// data.holdout_path: held-out samples of their own, for each kind of data.
#include "data/held_out_path.h"

#include <cmath>
#include <utility>

#include <gmock/gmock.h>

#include "data/resident_bytes.h"
#include "tests/data/array_fixture.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class HeldOutPath : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) const {
    return folder_.write(name, bytes);
  }

  // The share is ignored beside a path.
  [[nodiscard]] DataConfig data(const std::string& kind,
                                const std::string& train,
                                const std::string& held_out) const {
    DataConfig config = data_config(kind, (folder_.root() / train).string(), 0.5);
    config.holdout_path = (folder_.root() / held_out).string();
    return config;
  }

  template <class Model>
  [[nodiscard]] Error error_of(const DataConfig& config, const Model& model) const {
    const Error error = open_error(config, model);
    EXPECT_EQ(error.key, "data.holdout_path");
    EXPECT_NE(error.remedy, "");
    return error;
  }

  // A folder of arrays: one pixel each, with a class.
  void write_arrays(const std::string& name, const std::vector<std::uint8_t>& pixels) const {
    const auto count = static_cast<std::int64_t>(pixels.size());
    write(name + "/inputs.npy", npy_bytes({count, 1}, pixels));
    write(name + "/targets.npy", npy_longs({count}, std::vector<std::int64_t>(pixels.size(), 3)));
  }

  DataFolder folder_;
  const SampleFormat pixel_ = classifier({1});
};

std::vector<std::int32_t> tokens_from(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(first + static_cast<std::int32_t>(i));
  return tokens;
}

TEST_F(HeldOutPath, OfTextIsReadFromItsBeginning) {
  write("train.txt", "abcdefghijklmnopq");
  write("val.txt", "ABCDEFGHI");
  const auto source = opened(data("text", "train.txt", "val.txt"), model_config(4));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->train_samples(), 3U) << "all of the training text";
  EXPECT_EQ(source->eval_samples(), 2U);
  EXPECT_EQ(eval_sample(*source, 0, 4).inputs, tokens_from('A', 4));
  EXPECT_EQ(eval_sample(*source, 1, 4).targets, tokens_from('F', 4));
  EXPECT_EQ(eval_sample(*source, 2, 4).inputs, tokens_from('A', 4));
  EXPECT_EQ(source->bytes_per_token(), 1);
}

TEST_F(HeldOutPath, LeavesTheTrainingSamplesOfAWholeFile) {
  write("train.txt", "abcdefghijklmnopq");
  write("val.txt", "ABCDEFGHI");
  const auto whole =
      opened(data_config("text", (folder_.root() / "train.txt").string(), 0), model_config(4));
  const auto apart = opened(data("text", "train.txt", "val.txt"), model_config(4));
  for (std::uint64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(train_sample(*apart, i, 4), train_sample(*whole, i, 4)) << i;
  }
}

TEST_F(HeldOutPath, OfTokensHasItsOwnHeaderAndTheSameDtype) {
  const auto shorts = [](const std::vector<std::uint16_t>& tokens) { return bytes_of(tokens); };
  write("train.bin", shorts({1, 2, 3, 4, 5, 6, 7, 8}));
  write("val.npy", npy("<u2", {5}, std::vector<std::uint16_t>{9, 10, 11, 12, 13}));
  const auto source = opened(data("tokens", "train.bin", "val.npy"), model_config(4, 100));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(eval_sample(*source, 0, 4).targets, tokens_from(10, 4));

  write("wide.npy", npy("<u4", {5}, std::vector<std::uint32_t>{9, 10, 11, 12, 13}));
  const Error error = error_of(data("tokens", "train.bin", "wide.npy"), model_config(4, 100));
  EXPECT_EQ(error.cause, "they are read as uint16 and uint32");
  EXPECT_THAT(error.remedy, HasSubstr("data.dtype"));

  write("outside.bin", shorts({1, 2, 3, 500, 5}));
  const Error outside = error_of(data("tokens", "train.bin", "outside.bin"), model_config(4, 100));
  EXPECT_THAT(outside.what, HasSubstr("token 500"));
  EXPECT_THAT(outside.what, HasSubstr("outside.bin"));
}

TEST_F(HeldOutPath, OfTokensThatIsTooShortOrAbsentIsRefused) {
  write("train.txt", "abcdefghijklmnopq");
  write("val.txt", "ABCD");
  const Error error = error_of(data("text", "train.txt", "val.txt"), model_config(4));
  EXPECT_EQ(error.cause, "it has 4 tokens; with model.context = 4 it needs at least 5");
  const Error absent = error_of(data("text", "train.txt", "none.txt"), model_config(4));
  EXPECT_THAT(absent.what, HasSubstr("none.txt"));
  EXPECT_THAT(absent.remedy, Not(HasSubstr("data.path")));
}

TEST_F(HeldOutPath, WithinTheTrainingTextIsRefused) {
  write("all/train.txt", "abcdefghijklmnopq");
  write("all/val.txt", "ABCDEFGHI");
  for (const char* held_out : {"all/val.txt", "all", "."}) {
    const Error error = error_of(data("text", "all", held_out), model_config(4));
    EXPECT_EQ(error.code, ErrorCode::kConfig);
    EXPECT_EQ(error.what, "data.holdout_path and data.path share samples");
  }
  EXPECT_EQ(open_error(data("text", "all/val.txt", "all/../all/val.txt"), model_config(4)).code,
            ErrorCode::kConfig);
}

TEST_F(HeldOutPath, OfTextThatIsAlsoTrainedOnIsRemarked) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i * 7919 % 10007) + ' ';
  write("train.txt", "something else " + text);
  write("val.txt", text);
  write("other.txt", std::string(text.rbegin(), text.rend()));
  const auto remarks = [&](const char* held_out) {
    return opened(data("text", "train.txt", held_out), model_config(4))->remarks();
  };
  EXPECT_THAT(remarks("val.txt"), ElementsAre(HasSubstr("8 of 8 passages of the held-out tokens")));
  EXPECT_THAT(remarks("other.txt"), IsEmpty());
}

TEST_F(HeldOutPath, OfArraysReplacesTheShareAndAPartOfTheirOwn) {
  write_arrays("train", {10, 20, 30, 40});
  write_arrays("val", {50, 60});
  const auto values = [&](const DataConfig& config) {
    const auto source = opened(config, pixel_);
    std::vector<long> found;
    for (std::uint64_t i = 0; source != nullptr && i < source->eval_samples(); ++i) {
      found.push_back(std::lround(floats_of(eval_sample(*source, i, pixel_).inputs).front() * 255));
    }
    EXPECT_EQ(source->train_samples(), 4U);
    return found;
  };
  EXPECT_THAT(values(data("arrays", "train", "val")), ElementsAre(50, 60));
  write("train/eval_inputs.npy", npy_bytes({1, 1}, {70}));
  write("train/eval_targets.npy", npy_longs({1}, {1}));
  EXPECT_THAT(values(data("arrays", "train", "val")), ElementsAre(50, 60));
  write("val/eval_inputs.npy", npy_bytes({1, 1}, {80}));
  write("val/eval_targets.npy", npy_longs({1}, {1}));
  EXPECT_THAT(values(data("arrays", "train", "val")), ElementsAre(80));
}

TEST_F(HeldOutPath, OfArraysOfAnotherShapeOrDtypeIsRefused) {
  write_arrays("train", {10, 20, 30, 40});
  write("val/inputs.npy", npy_bytes({1, 2}, {1, 2}));
  write("val/targets.npy", npy_longs({1}, {1}));
  EXPECT_EQ(error_of(data("arrays", "train", "val"), pixel_).cause,
            "the training samples are [1] of uint8, the held-out ones [2] of uint8");
  write("val/inputs.npy", npy_floats({1, 1}, {1}));
  EXPECT_EQ(error_of(data("arrays", "train", "val"), pixel_).cause,
            "the training samples are [1] of uint8, the held-out ones [1] of float32");
  write("val/inputs.npy", npy_bytes({1, 1}, {1}));
  write("val/targets.npy", npy_longs({1}, {11}));
  EXPECT_THAT(error_of(data("arrays", "train", "val"), pixel_).what, HasSubstr("val/targets.npy"));
}

TEST_F(HeldOutPath, OfArraysWithoutATargetIsRefused) {
  SampleFormat ignoring = pixel_;
  ignoring.ignored_target = -100;
  write_arrays("train", {10, 20, 30, 40});
  write("val/inputs.npy", npy_bytes({2, 1}, {1, 2}));
  write("val/targets.npy", npy_longs({2}, {-100, -100}));
  EXPECT_THAT(error_of(data("arrays", "train", "val"), ignoring).what, HasSubstr("no targets"));
}

TEST_F(HeldOutPath, IsPartOfTheDatasIdentity) {
  write_arrays("train", {10, 20, 30, 40});
  write_arrays("val", {50, 60});
  write("train.txt", "abcdefghijklmnopq");
  write("val.txt", "ABCDEFGHI");
  const auto identities = [&] {
    return std::pair(opened(data("arrays", "train", "val"), pixel_)->identity(),
                     opened(data("text", "train.txt", "val.txt"), model_config(4))->identity());
  };
  const auto before = identities();
  EXPECT_EQ(before, identities());
  EXPECT_EQ(before.second.bytes, 17U + 9U);
  write_arrays("val", {50, 61});
  write("val.txt", "ABCDEFGHJ");
  EXPECT_NE(before.first, identities().first);
  EXPECT_NE(before.second, identities().second);
}

TEST_F(HeldOutPath, OfFilesOfImagesHasTheirTestImagesOrAll) {
  const std::string red(3072, 'r');
  const std::string blue(3072, 'b');
  write("train/data_batch_1.bin", '\1' + red + '\2' + red);
  write("val/test_batch.bin", '\3' + blue);
  write("more/data_batch_1.bin", '\4' + blue + '\5' + blue);
  const SampleFormat pictures = classifier({3, 32, 32});
  EXPECT_EQ(opened(data("images", "train", "val"), pictures)->eval_samples(), 1U);
  const auto all = opened(data("images", "train", "more"), pictures);
  EXPECT_EQ(all->eval_samples(), 2U);
  EXPECT_EQ(all->train_samples(), 2U);
  EXPECT_THAT(eval_sample(*all, 0, pictures).targets, ElementsAre(4));
  write("digits/t10k-images-idx3-ubyte", "any");
  EXPECT_THAT(error_of(data("images", "train", "digits"), pictures).what,
              HasSubstr("no CIFAR files in"));
}

TEST_F(HeldOutPath, AddsToTheMemoryThatFoldersTake) {
  write("train/a.txt", "four");
  write("val/a.txt", "three");
  EXPECT_EQ(resident_data_bytes(data("text", "train", "val"), {}), 4 + 5);
}

}  // namespace
}  // namespace motley

// MNIST's and CIFAR's files: their contents, and the errors for damaged ones.
#include <gmock/gmock.h>

#include "data/files/idx_files.h"
#include "tests/data/array_fixture.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ImageFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    folder_.write(name, bytes);
  }

  void write_mnist(const std::string& images = "train-images-idx3-ubyte",
                   const std::string& labels = "train-labels-idx1-ubyte") const {
    write(images, idx_of({2, 1, 3}, "\x01\x02\x03\x04\x05\x06"));
    write(labels, idx_of({2}, "\x07\x08"));
  }

  // Images of one colour, each after its label of one or two bytes.
  static std::string cifar(const std::vector<std::string>& labels) {
    std::string bytes;
    for (const std::string& label : labels) bytes += label + std::string(3072, label.back() + 100);
    return bytes;
  }

  [[nodiscard]] DataConfig data(double holdout = 0) const {
    return data_config("images", folder_.root(), holdout);
  }

  [[nodiscard]] Error error_of(const SampleFormat& format) const {
    const Error error = open_error(data(), format);
    EXPECT_EQ(error.code, ErrorCode::kData);
    EXPECT_NE(error.remedy, "");
    return error;
  }

  [[nodiscard]] std::vector<std::int32_t> labels(const SampleFormat& format) const {
    const auto source = opened(data(), format);
    std::vector<std::int32_t> found;
    for (std::uint64_t i = 0; source != nullptr && i < source->train_samples(); ++i) {
      found.push_back(train_sample(*source, i, format).targets.front());
    }
    std::ranges::sort(found);
    return found;
  }

  const SampleFormat digits_ = classifier({1, 1, 3});
  const SampleFormat pictures_ = classifier({3, 32, 32}, 100);

 private:
  DataFolder folder_;
};

TEST_F(ImageFiles, OfMnistAreRead) {
  write_mnist();
  const auto source = opened(data(), digits_);
  const Sample sample = train_sample(*source, 0, digits_);
  const float first = sample.targets[0] == 7 ? 1 : 4;
  EXPECT_THAT(floats_of(sample.inputs),
              ElementsAre(first / 255, (first + 1) / 255, (first + 2) / 255));
  EXPECT_THAT(labels(digits_), ElementsAre(7, 8));
  EXPECT_EQ(source->eval_samples(), 0U);
}

TEST_F(ImageFiles, OfMnistAreKnownByTheirOtherNames) {
  write_mnist("train-images.idx3-ubyte", "train-labels-idx1");
  EXPECT_THAT(labels(digits_), ElementsAre(7, 8));
}

TEST_F(ImageFiles, OfMnistHoldOutTheirTest) {
  write_mnist();
  write("t10k-images-idx3-ubyte", idx_of({1, 1, 3}, "\x09\x09\x09"));
  write("t10k-labels-idx1-ubyte", idx_of({1}, "\x05"));
  const auto source = opened(data(0.5), digits_);
  EXPECT_EQ(source->train_samples(), 2U);
  EXPECT_EQ(source->eval_samples(), 1U);
  EXPECT_THAT(eval_sample(*source, 0, digits_).targets, ElementsAre(5));
}

TEST_F(ImageFiles, OfMnistThatDoNotGoTogetherAreRefused) {
  write_mnist();
  write("train-labels-idx1-ubyte", idx_of({3}, "\x07\x08\x09"));
  EXPECT_EQ(error_of(digits_).cause, "2 images and 3 labels");
  write_mnist();
  write("t10k-images-idx3-ubyte", idx_of({1, 3, 1}, "\x09\x09\x09"));
  EXPECT_THAT(error_of(digits_).what, HasSubstr("t10k-labels-idx1-ubyte"));
  write("t10k-labels-idx1-ubyte", idx_of({1}, "\x05"));
  EXPECT_EQ(error_of(digits_).cause, "their images are [1, 3] and [3, 1]");
}

TEST_F(ImageFiles, OfMnistWithoutLabelsAreRefused) {
  write("train-images-idx3-ubyte", idx_of({1, 1, 3}, "abc"));
  EXPECT_THAT(error_of(digits_).what, HasSubstr("train-labels-idx1-ubyte"));
}

TEST_F(ImageFiles, OfMnistThatAreDamagedAreRefused) {
  const auto cause = [](const std::string& file) {
    const auto header = parse_idx(std::as_bytes(std::span(file)), 3, "a.idx");
    EXPECT_FALSE(header.ok());
    EXPECT_THAT(header.error().what, HasSubstr("a.idx"));
    return header.ok() ? "" : header.error().cause;
  };
  const std::string right = idx_of({2, 1, 3}, "123456");
  EXPECT_TRUE(parse_idx(std::as_bytes(std::span(right)), 3, "a.idx").ok());
  EXPECT_THAT(cause(right + "x"), HasSubstr("declares [2, 1, 3], but 7 bytes follow"));
  EXPECT_THAT(cause(right.substr(0, 20)), HasSubstr("4 bytes follow"));
  EXPECT_THAT(cause(right.substr(0, 15)), HasSubstr("less than a header's 16"));
  EXPECT_THAT(cause(idx_of({2, 3}, "123456789012")), HasSubstr("the bytes 0 0 8 2"));
  EXPECT_THAT(cause("\x1f\x8b\x08\x03" + right), HasSubstr("the bytes 31 139 8 3"));
  EXPECT_THAT(cause(idx_of({0, 1, 3}, "")), HasSubstr("declares [0, 1, 3]"));
  // 2^64 bytes overflow to 0 in 64 bits.
  EXPECT_THAT(cause(idx_of({std::int64_t{1} << 31, std::int64_t{1} << 31, 4}, "")),
              HasSubstr("but 0 bytes follow"));
}

TEST_F(ImageFiles, OfCifar10AreReadFromAllTheirBatches) {
  write("data_batch_1.bin", cifar({"\x01", "\x02"}));
  write("data_batch_2.bin", cifar({"\x03"}));
  write("test_batch.bin", cifar({"\x09"}));
  EXPECT_THAT(labels(pictures_), ElementsAre(1, 2, 3));
  const auto source = opened(data(), pictures_);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Sample sample = train_sample(*source, i, pictures_);
    const auto colour = static_cast<float>(sample.targets[0] + 100) / 255;
    EXPECT_THAT(floats_of(sample.inputs), testing::Each(colour));
  }
  EXPECT_THAT(eval_sample(*source, 0, pictures_).targets, ElementsAre(9));
}

TEST_F(ImageFiles, OfCifar100HaveTheirFineLabel) {
  write("train.bin", cifar({"\x01\x20", "\x02\x30"}));
  write("test.bin", cifar({"\x03\x40"}));
  EXPECT_THAT(labels(pictures_), ElementsAre(0x20, 0x30));
  EXPECT_THAT(eval_sample(*opened(data(), pictures_), 0, pictures_).targets, ElementsAre(0x40));
}

TEST_F(ImageFiles, OfCifarWithABatchMissingAreRefused) {
  write("data_batch_1.bin", cifar({"\x01"}));
  write("data_batch_3.bin", cifar({"\x03"}));
  EXPECT_THAT(error_of(pictures_).what, HasSubstr("data_batch_2.bin"));
}

TEST_F(ImageFiles, OfCifarCutShortAreRefused) {
  write("data_batch_1.bin", cifar({"\x01"}).substr(0, 3000));
  EXPECT_EQ(error_of(pictures_).cause,
            "3000 bytes are not a multiple of the 3073 bytes of an image");
  write("data_batch_1.bin", "");
  EXPECT_THAT(error_of(pictures_).cause, HasSubstr("0 bytes"));
}

TEST_F(ImageFiles, WithALabelThatTheModelLacksAreRefusedWithTheirPlace) {
  write("data_batch_1.bin", cifar({"\x01", "\x02"}));
  write("data_batch_2.bin", cifar({"\x03", "\x0C"}));
  const Error error = error_of(classifier({3, 32, 32}));
  EXPECT_THAT(error.what, HasSubstr("data_batch_2.bin"));
  EXPECT_THAT(error.cause, HasSubstr("number 0 of sample 1 is 12"));
}

TEST_F(ImageFiles, OfAnotherSizeThanTheModelsAreRefused) {
  write_mnist();
  EXPECT_EQ(error_of(pictures_).cause,
            "one input is [1, 3] of uint8; the model needs [3, 32, 32] of float32");
}

TEST_F(ImageFiles, ThatAreNotThereAreSaidToBeLookedFor) {
  EXPECT_THAT(error_of(pictures_).cause, HasSubstr("data_batch_1.bin (CIFAR-10)"));
  EXPECT_THAT(open_error(data_config("images", "/none"), pictures_).cause,
              HasSubstr("not a readable folder"));
}

TEST_F(ImageFiles, InAFormThatCannotBeReadAreKnown) {
  write("data_batch_1", "pickle");
  EXPECT_EQ(error_of(pictures_).remedy, "use the binary version");
  write("train-images-idx3-ubyte.gz", "gz");
  EXPECT_EQ(error_of(pictures_).remedy, "gunzip them");
}

}  // namespace
}  // namespace motley

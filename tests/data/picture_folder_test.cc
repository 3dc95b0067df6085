// Folders of pictures: PNG files of one pixel, written with libpng.
#include "data/files/picture_folder.h"

#include <fmt/format.h>

#include <filesystem>

#include <gmock/gmock.h>

#ifdef MOTLEY_WITH_PNG
#include <png.h>
#endif

#include "base/progress_counter.h"
#include "tests/data/array_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

#ifdef MOTLEY_WITH_PNG

std::string png(std::uint32_t width,
                std::uint32_t height,
                const std::string& pixels,
                std::uint32_t format = PNG_FORMAT_RGB) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t size = 0;
  EXPECT_NE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr), 0);
  std::string file(size, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr), 0);
  file.resize(size);
  return file;
}

// A PNG file of one grey pixel.
std::string dot(char value) {
  return png(1, 1, std::string(1, value), PNG_FORMAT_GRAY);
}

class PictureFolder : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    folder_.write(name, bytes);
  }

  [[nodiscard]] const std::filesystem::path& root() const { return folder_.root(); }

  [[nodiscard]] DataConfig data() const { return data_config("images", folder_.root()); }

  // The value of the one pixel and the label of every sample, sorted.
  [[nodiscard]] std::vector<std::pair<int, int>> all() const {
    const auto source = opened(data(), dots_);
    std::vector<std::pair<int, int>> found;
    for (std::uint64_t i = 0; source != nullptr && i < source->train_samples(); ++i) {
      found.push_back(seen(train_sample(*source, i, dots_)));
    }
    std::ranges::sort(found);
    return found;
  }

  [[nodiscard]] static std::pair<int, int> seen(const Sample& sample) {
    const float value = floats_of(sample.inputs).front() * 255;
    return {static_cast<int>(value + 0.5F), sample.targets.front()};
  }

  [[nodiscard]] Error error_of() const {
    const Error error = open_error(data(), dots_);
    EXPECT_EQ(error.code, ErrorCode::kData);
    return error;
  }

  const SampleFormat dots_ = classifier({1, 1, 1}, 3);
  const DataFolder folder_;
};

TEST_F(PictureFolder, HasAClassForEachSubFolderInTheOrderOfTheirNames) {
  write("dogs/1.png", dot(30));
  write("cats/deep/2.PNG", dot(10));
  write("cats/1.png", dot(11));
  write("cats/notes.txt", "no picture");
  write(".hidden/1.png", dot(99));
  write("README", "none either");
  EXPECT_THAT(all(), ElementsAre(std::pair{10, 0}, std::pair{11, 0}, std::pair{30, 1}));
  EXPECT_THAT(opened(data(), dots_)->class_names(), ElementsAre("cats", "dogs"));
}

TEST_F(PictureFolder, IsBroughtToTheModelsSize) {
  write("a/wide.png",
        png(4, 2, std::string("\x00\x0A\x0A\x00\x00\x14\x14\x00", 8), PNG_FORMAT_GRAY));
  EXPECT_THAT(all(), ElementsAre(std::pair{15, 0}));
}

TEST_F(PictureFolder, HoldsOutWhatIsInAPartOfItsOwn) {
  write("train/a/1.png", dot(1));
  write("train/b/1.png", dot(2));
  write("val/b/1.png", dot(3));
  EXPECT_THAT(all(), ElementsAre(std::pair{1, 0}, std::pair{2, 1}));
  const auto source = opened(data(), dots_);
  EXPECT_EQ(source->eval_samples(), 1U);
  EXPECT_EQ(seen(eval_sample(*source, 0, dots_)), (std::pair{3, 1}));
  write("val/c/1.png", dot(3));
  EXPECT_THAT(error_of().what, HasSubstr("val/c"));
}

// data.holdout_path: classes are mapped by name, whatever their order and number there.
TEST_F(PictureFolder, OfHeldOutPicturesHasTheClassesOfTraining) {
  write("train/ant/1.png", dot(1));
  write("train/bee/1.png", dot(2));
  write("train/cow/1.png", dot(3));
  write("other/cow/1.png", dot(4));
  write("other/bee/1.png", dot(5));
  DataConfig config = data();
  config.holdout = 0.5;
  config.path = (root() / "train").string();
  config.holdout_path = (root() / "other").string();
  const auto source = opened(config, dots_);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->train_samples(), 3U);
  ASSERT_EQ(source->eval_samples(), 2U);
  EXPECT_EQ(seen(eval_sample(*source, 0, dots_)), (std::pair{5, 1}));
  EXPECT_EQ(seen(eval_sample(*source, 1, dots_)), (std::pair{4, 2}));
  config.path = root().string();
  EXPECT_EQ(opened(config, dots_)->train_samples(), 3U) << "of its part for training";

  write("other/dog/1.png", dot(6));
  const Error other = open_error(config, dots_);
  EXPECT_EQ(other.key, "data.holdout_path");
  EXPECT_THAT(other.what, HasSubstr("no training pictures of the class"));
  EXPECT_THAT(other.what, HasSubstr("other/dog"));
}

TEST_F(PictureFolder, OfHeldOutPicturesAmongThoseOfTrainingIsRefused) {
  write("ant/1.png", dot(1));
  write("val/ant/1.png", dot(2));
  DataConfig config = data();
  config.holdout_path = (root() / "val").string();
  const Error error = open_error(config, dots_);
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.cause, HasSubstr("val is within"));
  config.holdout_path = (root() / "none").string();
  EXPECT_EQ(open_error(config, dots_).code, ErrorCode::kConfig) << "within it, and absent";
}

TEST_F(PictureFolder, MayHaveAClassOfTrains) {
  write("bus/1.png", dot(1));
  write("train/1.png", dot(2));
  EXPECT_THAT(all(), ElementsAre(std::pair{1, 0}, std::pair{2, 1}));
}

TEST_F(PictureFolder, WithAnEmptyClassIsRefused) {
  write("a/1.png", dot(1));
  write("b/1.txt", "");
  EXPECT_THAT(error_of().what, HasSubstr("no pictures in"));
}

TEST_F(PictureFolder, WithDamagedPicturesIsRefusedWithAllOfThem) {
  write("train/a/1.png", dot(1));
  write("train/a/2.png", dot(1).substr(0, 30));
  write("train/b/3.jpg", "<html>not found</html>");
  write("train/b/4.png", dot(2));
  write("val/a/5.png", std::string("\0\0\0\x18", 4) + "ftypheic");
  const Error error = error_of();
  EXPECT_THAT(error.what, HasSubstr("3 of 5 pictures cannot be used"));
  EXPECT_THAT(error.cause, HasSubstr("train/a/2.png: "));
  EXPECT_THAT(error.cause, HasSubstr("train/b/3.jpg: it begins like no picture"));
  EXPECT_THAT(error.cause, HasSubstr("val/a/5.png: HEIC files are not read"));
  EXPECT_THAT(error.remedy, HasSubstr("data.skip_damaged"));
}

TEST_F(PictureFolder, NamesABoundedNumberOfDamagedPictures) {
  for (int i = 100; i < 150; ++i) write(fmt::format("a/{}.png", i), "damaged");
  const Error error = error_of();
  EXPECT_THAT(error.what, HasSubstr("50 of 50 pictures"));
  EXPECT_THAT(error.cause, HasSubstr("a/109.png"));
  EXPECT_THAT(error.cause, EndsWith("; and 40 more"));
}

TEST_F(PictureFolder, LeavesOutDamagedPicturesOnRequest) {
  write("a/1.png", dot(1));
  write("a/2.png", dot(1).substr(0, 30));
  write("b/3.png", dot(3));
  DataConfig config = data();
  config.skip_damaged = true;
  const auto source = opened(config, dots_);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->train_samples(), 2U);
  EXPECT_THAT(source->remarks(),
              ElementsAre(AllOf(HasSubstr("1 of 3 pictures were left out as damaged"),
                                HasSubstr("a/2.png: "))));
  const auto left_out = source->identity();
  fs::remove(folder_.root() / "a/2.png");
  EXPECT_EQ(opened(config, dots_)->identity(), left_out);
  fs::remove(folder_.root() / "b/3.png");
  write("b/4.png", "damaged");
  EXPECT_THAT(open_error(config, dots_).what, HasSubstr("no usable pictures in"));
}

TEST_F(PictureFolder, LeavesOutWhatOtherProgramsLeaveBehind) {
  write("cat/1.png", dot(1));
  write("dog/2.png", dot(2));
  const auto before = opened(data(), dots_)->identity();
  for (const char* name :
       {"__MACOSX/._cat", "__MACOSX/cat/._1.png", "cat/._1.png", ".DS_Store", "cat/.DS_Store",
        "cat/Thumbs.db", "desktop.ini", "cat/.ipynb_checkpoints/1-checkpoint.png"}) {
    write(name, dot(9));
  }
  write("cat/empty.png", "");
  write("cat/labels.txt", "1.png cat");
  write("README.md", "BMW and other cars");
  write("alone.png", dot(9));
  const auto source = opened(data(), dots_);
  EXPECT_EQ(source->identity(), before);
  const auto remarks = source->remarks();
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_THAT(remarks.front(), HasSubstr("11 files were left out, "));
  EXPECT_THAT(
      remarks.front(),
      HasSubstr(": 7 hidden or of the system (first: .DS_Store), 1 empty (cat/empty.png), 2 "
                "no picture (first: README.md), 1 in no sub-folder of a class (alone.png)"));
}

TEST_F(PictureFolder, RecognisesPicturesByTheirContent) {
  write("a/1.jpg", dot(1));
  write("a/2.txt", dot(2));
  write("a/3", dot(3));
  EXPECT_THAT(all(), ElementsAre(std::pair{1, 0}, std::pair{2, 0}, std::pair{3, 0}));
}

TEST_F(PictureFolder, WithMoreClassesThanTheModelIsRefused) {
  for (const char* name : {"a/1.png", "b/1.png", "c/1.png", "d/1.png"}) write(name, dot(1));
  EXPECT_THAT(error_of().what, HasSubstr("sub-folders of"));
  EXPECT_THAT(error_of().cause, HasSubstr("is 3; the model allows 0 to 2"));
}

TEST_F(PictureFolder, DoesNotFitAModelOfOtherThings) {
  write("a/1.png", dot(1));
  EXPECT_THAT(open_error(data(), classifier({1})).cause, HasSubstr("it takes [1]; a picture is"));
  EXPECT_THAT(open_error(data(), classifier({2, 1, 1})).cause, HasSubstr("[2, 1, 1]"));
}

TEST_F(PictureFolder, OfMoreThanMemoryTakesIsRefusedBeforeItIsRead) {
  write("a/1.png", "not read");
  EXPECT_THAT(open_error(data(), classifier({3, 65536, 65536})).remedy, HasSubstr("uint8 arrays"));
}

TEST_F(PictureFolder, IsCountedWhileItIsRead) {
  write("a/1.png", dot(1));
  ProgressCounter work;
  ASSERT_TRUE(open_source(data(), dots_, 1, &work).ok());
  EXPECT_GE(work.count(), 1U);
}

#endif

}  // namespace
}  // namespace motley

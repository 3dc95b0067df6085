// Folders of PNG and JPEG files. The tests write the files with the libraries that read them.
#include "data/files/picture_folder.h"

#include <gmock/gmock.h>

#ifdef MOTLEY_WITH_PNG
#include <png.h>
#endif
#ifdef MOTLEY_WITH_JPEG
#include <turbojpeg.h>
#endif

#include "base/progress_counter.h"
#include "data/files/raster.h"
#include "tests/data/array_fixture.h"

namespace motley {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Raster> decoded(const std::string& file, int channels) {
  return decode_picture(std::as_bytes(std::span(file)), channels, "a.picture");
}

std::vector<int> pixels_of(const Result<Raster>& raster) {
  EXPECT_TRUE(raster.ok()) << (raster.ok() ? "" : describe(raster.error()));
  std::vector<int> pixels;
  if (!raster.ok()) return pixels;
  for (const std::byte value : raster->pixels) pixels.push_back(std::to_integer<int>(value));
  return pixels;
}

TEST(Picture, ThatIsNeitherPngNorJpegIsRefused) {
  for (const std::string file : {"", "GIF89a", "\x89", "\xFF"}) {
    const auto raster = decoded(file, 3);
    ASSERT_FALSE(raster.ok());
    EXPECT_THAT(raster.error().what, HasSubstr("a.picture"));
    EXPECT_THAT(raster.error().cause, HasSubstr("neither like a PNG nor like a JPEG"));
  }
}

TEST(Picture, ThatIsTooLargeIsRefused) {
  EXPECT_TRUE(check_picture_size(1 << 14, 1 << 13, "p").ok());
  EXPECT_FALSE(check_picture_size(1 << 14, (1 << 13) + 1, "p").ok());
  EXPECT_FALSE(check_picture_size(0, 5, "p").ok());
  EXPECT_FALSE(check_picture_size(std::int64_t{1} << 40, std::int64_t{1} << 40, "p").ok());
}

#ifdef MOTLEY_WITH_JPEG

std::string jpeg(int width, int height, const std::string& rgb) {
  tjhandle encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(tjCompress2(encoder, reinterpret_cast<const unsigned char*>(rgb.data()), width, 0,
                        height, TJPF_RGB, &bytes, &size, TJSAMP_444, 100, TJFLAG_ACCURATEDCT),
            0);
  std::string file(reinterpret_cast<char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(encoder);
  return file;
}

TEST(Picture, OfJpegIsDecoded) {
  const auto raster = decoded(jpeg(16, 8, std::string(16 * 8 * 3, '\x40')), 3);
  EXPECT_THAT(pixels_of(raster), Each(0x40));
  EXPECT_EQ(raster->width, 16);
  EXPECT_EQ(raster->height, 8);
  EXPECT_EQ(raster->pixels.size(), 16U * 8 * 3);
  EXPECT_EQ(pixels_of(decoded(jpeg(1, 1, "\x40\x40\x40"), 1)), std::vector{0x40});
}

TEST(Picture, OfJpegCutShortIsRefused) {
  std::string noise;
  for (int i = 0; i < 32 * 32 * 3; ++i) noise += static_cast<char>(i * i % 251);
  const std::string right = jpeg(32, 32, noise);
  EXPECT_TRUE(decoded(right, 3).ok());
  for (const std::size_t bytes : {std::size_t{2}, std::size_t{100}, right.size() / 2}) {
    EXPECT_FALSE(decoded(right.substr(0, bytes), 3).ok()) << bytes;
  }
}

#else

TEST(Picture, OfJpegNeedsItsLibrary) {
  EXPECT_THAT(decoded("\xFF\xD8\xFF", 3).error().remedy, HasSubstr("libturbojpeg0-dev"));
}

#endif

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

TEST(Picture, OfPngIsDecodedToTheByte) {
  const auto raster = decoded(png(2, 1, std::string("\x01\x02\x03\xF0\x00\x10", 6)), 3);
  EXPECT_THAT(pixels_of(raster), ElementsAre(1, 2, 3, 0xF0, 0, 0x10));
  EXPECT_THAT(pixels_of(decoded(png(2, 1, "\x05\x50", PNG_FORMAT_GRAY), 1)), ElementsAre(5, 0x50));
}

TEST(Picture, OfPngIsChangedIntoTheModelsColours) {
  EXPECT_THAT(pixels_of(decoded(dot('\x42'), 3)), ElementsAre(0x42, 0x42, 0x42));
  EXPECT_THAT(pixels_of(decoded(png(1, 1, "\x42\x42\x42"), 1)), ElementsAre(0x42));
  const std::string clear("\x80\x80\x80\x00", 4);
  EXPECT_THAT(pixels_of(decoded(png(1, 1, clear, PNG_FORMAT_RGBA), 3)), ElementsAre(0, 0, 0));
}

TEST(Picture, OfPngThatIsDamagedIsRefused) {
  std::string file = png(8, 8, std::string(192, 'x'));
  EXPECT_FALSE(decoded(file.substr(0, 40), 3).ok());
  char& inside = file[file.find("IDAT") + 10];
  inside = static_cast<char>(inside ^ 1);
  EXPECT_FALSE(decoded(file, 3).ok());
}

class PictureFolder : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    folder_.write(name, bytes);
  }

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

 private:
  DataFolder folder_;
};

TEST_F(PictureFolder, HasAClassForEachSubFolderInTheOrderOfTheirNames) {
  write("dogs/1.png", dot(30));
  write("cats/deep/2.PNG", dot(10));
  write("cats/1.png", dot(11));
  write("cats/notes.txt", "no picture");
  write(".hidden/1.png", dot(99));
  write("README", "none either");
  EXPECT_THAT(all(), ElementsAre(std::pair{10, 0}, std::pair{11, 0}, std::pair{30, 1}));
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

TEST_F(PictureFolder, MayHaveAClassOfTrains) {
  write("bus/1.png", dot(1));
  write("train/1.png", dot(2));
  EXPECT_THAT(all(), ElementsAre(std::pair{1, 0}, std::pair{2, 1}));
}

TEST_F(PictureFolder, WithAnEmptyClassIsRefused) {
  write("a/1.png", dot(1));
  write("b/1.txt", "");
  EXPECT_THAT(error_of().what, HasSubstr("no PNG or JPEG file in"));
}

TEST_F(PictureFolder, WithADamagedPictureIsRefusedByItsName) {
  write("a/1.png", dot(1));
  write("a/2.png", dot(1).substr(0, 30));
  EXPECT_THAT(error_of().what, HasSubstr("a/2.png"));
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

#else

TEST(Picture, OfPngNeedsItsLibrary) {
  EXPECT_THAT(decoded("\x89PNG", 3).error().remedy, HasSubstr("libpng-dev"));
}

#endif

}  // namespace
}  // namespace motley

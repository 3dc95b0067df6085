// Every picture of golden/ has Pillow's pixels (make_pictures.py); damaged and foreign files are
// refused.
#include "data/pictures/decode_picture.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>

#include "base/philox.h"
#include "tests/fuzz/picture_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<DecodedPicture> decoded(const std::string& file, int channels = 3) {
  return decode_picture(std::as_bytes(std::span(file)), channels, "a.picture");
}

// What Pillow reads from a picture.
struct Expected {
  int tolerance = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::string pixels;
};

Expected expected_of(const fs::path& picture) {
  const std::string text = contents(picture.string() + ".ppm");
  std::istringstream stream(text);
  Expected expected;
  std::string magic;
  std::string hash;
  int brightest = 0;
  stream >> magic >> hash >> expected.tolerance >> expected.width >> expected.height >> brightest;
  expected.pixels = text.substr(static_cast<std::size_t>(stream.tellg()) + 1);
  return expected;
}

// Those whose library this build has.
std::vector<fs::path> golden_pictures() {
  std::vector<fs::path> pictures;
  for (const auto& entry : fs::directory_iterator(MOTLEY_GOLDEN_PICTURES)) {
    if (entry.path().extension() == ".ppm") continue;
    const std::string file = contents(entry.path());
    if (has_picture_library(std::as_bytes(std::span(file)))) pictures.push_back(entry.path());
  }
  std::ranges::sort(pictures);
  return pictures;
}

int largest_difference(const Raster& raster, const Expected& expected) {
  int largest = 0;
  for (std::size_t i = 0; i < raster.pixels.size(); ++i) {
    const int wanted = static_cast<unsigned char>(expected.pixels[i]);
    largest = std::max(largest, std::abs(std::to_integer<int>(raster.pixels[i]) - wanted));
  }
  return largest;
}

TEST(DecodePicture, HasThePixelsOfPillow) {
  const auto pictures = golden_pictures();
  ASSERT_FALSE(pictures.empty());
  for (const fs::path& path : pictures) {
    SCOPED_TRACE(path.filename());
    const auto picture = decoded(contents(path));
    ASSERT_TRUE(picture.ok()) << describe(picture.error());
    const Expected expected = expected_of(path);
    EXPECT_EQ(picture->raster.width, expected.width);
    EXPECT_EQ(picture->raster.height, expected.height);
    ASSERT_EQ(picture->raster.pixels.size(), expected.pixels.size());
    EXPECT_LE(largest_difference(picture->raster, expected), expected.tolerance);
  }
}

TEST(DecodePicture, GivesGreyPixelsToAModelOfOneChannel) {
  for (const fs::path& path : golden_pictures()) {
    SCOPED_TRACE(path.filename());
    const auto grey = decoded(contents(path), 1);
    ASSERT_TRUE(grey.ok()) << describe(grey.error());
    const auto colours = decoded(contents(path), 3);
    ASSERT_EQ(grey->raster.pixels.size() * 3, colours->raster.pixels.size());
    // libpng converts to grey in linear light, the others by ITU-R 601; both are between the
    // darkest and the brightest colour, but for rounding.
    for (std::size_t i = 0; i < grey->raster.pixels.size(); ++i) {
      const auto pixel = std::span(colours->raster.pixels).subspan(3 * i, 3);
      const auto [low, high] = std::ranges::minmax(pixel);
      const int value = std::to_integer<int>(grey->raster.pixels[i]);
      ASSERT_GE(value, std::to_integer<int>(low) - 4);
      ASSERT_LE(value, std::to_integer<int>(high) + 4);
    }
  }
}

TEST(DecodePicture, ReportsBytesThatBelongToNothing) {
  const std::string jpeg = "\xFF\xD8\xFF";
  if (!has_picture_library(std::as_bytes(std::span(jpeg)))) GTEST_SKIP() << "no libjpeg-turbo";
  const auto has_stray = [](const std::string& name) {
    return decoded(contents(fs::path(MOTLEY_GOLDEN_PICTURES) / name))->has_stray_bytes;
  };
  EXPECT_TRUE(has_stray("plain-stray.jpg"));
  EXPECT_TRUE(has_stray("progressive-stray.jpg"));
  for (const char* name : {"plain.jpg", "plain-zeros.jpg", "plain-no-end.jpg", "plain-trailer.jpg",
                           "progressive.jpg", "progressive-zeros.jpg"}) {
    EXPECT_FALSE(has_stray(name)) << name;
  }
}

// Only its end, without pixels, may be missing.
TEST(DecodePicture, RefusesEveryFileThatEndsEarly) {
  for (const fs::path& path : golden_pictures()) {
    const std::string name = path.filename().string();
    if (name.starts_with("animated")) continue;  // its other pictures are not read
    const std::string whole = contents(path);
    const Raster pixels = decoded(whole)->raster;
    std::size_t read = 0;
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const auto cut = decoded(whole.substr(0, bytes));
      if (!cut.ok()) continue;
      ++read;
      ASSERT_EQ(cut->raster.pixels, pixels.pixels) << name << " of " << bytes << " bytes";
    }
    // A trailer, an end marker, or a checksum.
    EXPECT_LE(read, 40U) << name;
  }
}

TEST(DecodePicture, RefusesWhatItDoesNotKnow) {
  const auto cause = [](const std::string& file) {
    const auto picture = decoded(file);
    EXPECT_FALSE(picture.ok());
    return picture.ok() ? "" : picture.error().cause;
  };
  EXPECT_THAT(cause(""), HasSubstr("empty"));
  EXPECT_THAT(cause("GIF"), HasSubstr("no picture of a known format"));
  EXPECT_THAT(cause("BMW and other cars"), HasSubstr("no picture of a known format"));
  EXPECT_THAT(cause(std::string("\0\0\0\x18", 4) + "ftypheic"), HasSubstr("HEIC"));
}

TEST(DecodePicture, RefusesWhatIsTooLarge) {
  for (const fs::path& path : golden_pictures()) {
    const std::string file = contents(path);
    const auto picture =
        decode_picture(std::as_bytes(std::span(file)), 3, "a.picture", 19 * 13 - 1);
    ASSERT_FALSE(picture.ok()) << path;
    EXPECT_THAT(picture.error().cause, HasSubstr("the limit is 246 pixels")) << path;
  }
}

// Of the formats only PNG has checksums: damage that it does not refuse changes no pixel. Others
// may read a damaged file as other programs do.
TEST(DamagedPicture, IsReadOrRefusedInEveryFormat) {
  constexpr int kFilesOfEach = 200;
  const auto pictures = golden_pictures();
  for (const char* format : {".jpg", ".png", ".webp", ".gif", ".bmp", ".tiff"}) {
    std::vector<fs::path> of_format;
    std::ranges::copy_if(pictures, std::back_inserter(of_format),
                         [&](const fs::path& path) { return path.extension() == format; });
    for (std::uint64_t i = 0; i < kFilesOfEach && !of_format.empty(); ++i) {
      const fs::path& path = of_format[i % of_format.size()];
      const std::string whole = contents(path);
      std::string file = whole;
      const PhiloxBlock draw = philox4x32(62, i, 0);
      for (std::uint32_t change = 0; change <= draw[0] % 3; ++change) {
        const std::uint32_t place = philox4x32(63, i, change)[0];
        file[place % file.size()] = static_cast<char>(philox4x32(64, i, change)[0]);
      }
      if (draw[1] % 4 == 0) file.resize(draw[2] % file.size());
      EXPECT_EQ(wrong_with_picture(file), "") << path << ", file " << i;
      const auto read = decoded(file);
      if (path.extension() != ".png" || !read.ok()) continue;
      EXPECT_EQ(read->raster.pixels, decoded(whole)->raster.pixels) << path << ", file " << i;
    }
  }
}

RC_GTEST_PROP(DamagedPicture, IsReadOrRefused, ()) {
  static const std::vector<fs::path> pictures = golden_pictures();
  const std::string whole = contents(*rc::gen::elementOf(pictures));
  RC_ASSERT(wrong_with_picture(whole) == "");
  RC_ASSERT(wrong_with_picture(damaged(whole, fragments_of_bytes())) == "");
}

}  // namespace
}  // namespace motley

#include <png.h>

#include "data/files/raster.h"

namespace motley {
namespace {

// Frees the image on every return; libpng does not longjmp through our code.
class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }

  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  ~PngImage() { png_image_free(&image_); }

  png_image* operator->() { return &image_; }

  png_image* get() { return &image_; }

 private:
  png_image image_{};
};

}  // namespace

Result<Raster> decode_png(std::span<const std::byte> file, int channels, const std::string& path) {
  PngImage image;
  if (png_image_begin_read_from_memory(image.get(), file.data(), file.size()) == 0) {
    return damaged_picture(path, image->message);
  }
  MOTLEY_TRY(check_picture_size(image->width, image->height, path));
  image->format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  Raster raster{image->width, image->height, channels, {}};
  raster.pixels.resize(PNG_IMAGE_SIZE(*image.get()));
  const png_color behind{0, 0, 0};  // transparent pixels become black
  if (png_image_finish_read(image.get(), &behind, raster.pixels.data(), 0, nullptr) == 0) {
    return damaged_picture(path, image->message);
  }
  return raster;
}

}  // namespace motley

#include <png.h>

#include <string>
#include <utility>

#include "data/pictures/picture_decoders.h"
#include "data/pictures/png_chunks.h"

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

Result<DecodedPicture> decode_png(const PictureFile& file) {
  if (const std::string damage = damage_of_png_chunks(file.bytes); !damage.empty()) {
    return damaged_picture(file, damage);
  }
  PngImage image;
  if (png_image_begin_read_from_memory(image.get(), file.bytes.data(), file.bytes.size()) == 0) {
    return damaged_picture(file, image->message);
  }
  MOTLEY_TRY(check_picture_size(file, image->width, image->height));
  image->format = file.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  // Without it, values of 16 bits in a file that does not name their scale are taken as linear
  // light, unlike those of 8 bits.
  image->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  Raster raster{image->width, image->height, file.channels, {}};
  raster.pixels.resize(PNG_IMAGE_SIZE(*image.get()));
  const png_color behind{0, 0, 0};  // transparent pixels become black
  if (png_image_finish_read(image.get(), &behind, raster.pixels.data(), 0, nullptr) == 0) {
    return damaged_picture(file, image->message);
  }
  return DecodedPicture{std::move(raster)};
}

}  // namespace motley

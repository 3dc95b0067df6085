#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/pictures/picture_decoders.h"

namespace motley {
namespace {

// A file in memory as libtiff reads it, and the first damage that libtiff reports.
struct TiffInput {
  std::span<const std::byte> bytes;
  std::uint64_t place = 0;
  std::string damage;
};

tmsize_t read_input(thandle_t handle, void* to, tmsize_t count) {
  auto& input = *static_cast<TiffInput*>(handle);
  if (count < 0 || input.place > input.bytes.size()) return 0;
  const auto unread = input.bytes.subspan(static_cast<std::size_t>(input.place));
  const std::size_t read = std::min(unread.size(), static_cast<std::size_t>(count));
  std::ranges::copy(unread.first(read), static_cast<std::byte*>(to));
  input.place += read;
  return static_cast<tmsize_t>(read);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) {
  return 0;
}

toff_t seek_input(thandle_t handle, toff_t offset, int whence) {
  auto& input = *static_cast<TiffInput*>(handle);
  const std::uint64_t base = whence == SEEK_SET   ? 0
                             : whence == SEEK_CUR ? input.place
                                                  : input.bytes.size();
  input.place = base + offset;
  return input.place;
}

int close_nothing(thandle_t) {
  return 0;
}

toff_t size_of_input(thandle_t handle) {
  return static_cast<TiffInput*>(handle)->bytes.size();
}

void note(void* data, const char* format, std::va_list arguments) {
  auto& damage = static_cast<TiffInput*>(data)->damage;
  if (!damage.empty()) return;
  char text[200];
  std::vsnprintf(text, sizeof text, format, arguments);
  damage = text;
}

int on_error(TIFF*, void* data, const char*, const char* format, std::va_list arguments) {
  note(data, format, arguments);
  return 1;
}

// Most warnings are about unknown tags. Those of its decoders, such as "JPEGLib" and "Fax4Decode",
// are about damaged data, except for one about an old variant of LZW.
int on_warning(TIFF*, void* data, const char* module, const char* format, std::va_list arguments) {
  const std::string_view name = module == nullptr ? "" : module;
  const bool is_decoder = name == "JPEGLib" || (name.ends_with("Decode") && name != "LZWPreDecode");
  if (is_decoder) note(data, format, arguments);
  return 1;
}

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};

struct FreeOptions {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

std::unique_ptr<TIFF, CloseTiff> open_tiff(TiffInput& input, std::int64_t pixels_max) {
  // Of one block: pixels of up to 16 bytes, and tables.
  const tmsize_t memory_max = std::min<tmsize_t>(16 * pixels_max + (1 << 20), 1 << 30);
  const std::unique_ptr<TIFFOpenOptions, FreeOptions> options(TIFFOpenOptionsAlloc());
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &input);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, &input);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), memory_max);
  return std::unique_ptr<TIFF, CloseTiff>(
      TIFFClientOpenExt("picture", "rm", &input, read_input, write_nothing, seek_input,
                        close_nothing, size_of_input, nullptr, nullptr, options.get()));
}

}  // namespace

Result<DecodedPicture> decode_tiff(const PictureFile& file) {
  TiffInput input{file.bytes, 0, {}};
  const auto damaged = [&](const char* otherwise) {
    return damaged_picture(file, input.damage.empty() ? otherwise : input.damage);
  };
  const auto tiff = open_tiff(input, file.pixels_max);
  if (tiff == nullptr) return damaged("it is not a valid TIFF file");
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  if (TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0) {
    return damaged("it has no width and height");
  }
  MOTLEY_TRY(check_picture_size(file, width, height));
  char unsupported[1024] = "";
  if (TIFFRGBAImageOK(tiff.get(), unsupported) == 0) return damaged(unsupported);
  std::uint16_t orientation = ORIENTATION_TOPLEFT;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  // As stored: in the orientation that the file has.
  std::vector<std::uint32_t> pixels(static_cast<std::size_t>(width) * height);
  TIFFSetField(tiff.get(), TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  const int read =
      TIFFReadRGBAImageOriented(tiff.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT, 1);
  if (read == 0 || !input.damage.empty()) return damaged("its data cannot be decoded");
  // The colours are already mixed with black where the picture is transparent.
  Raster raster{width, height, file.channels, {}};
  raster.pixels.resize(pixel_bytes(width, height, file.channels));
  const auto step = static_cast<std::size_t>(file.channels);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    write_pixel(std::span(raster.pixels).subspan(i * step, step), TIFFGetR(pixels[i]),
                TIFFGetG(pixels[i]), TIFFGetB(pixels[i]));
  }
  return DecodedPicture{oriented(std::move(raster), orientation)};
}

}  // namespace motley

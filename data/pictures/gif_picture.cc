#include <gif_lib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/pictures/picture_decoders.h"

namespace motley {
namespace {

struct Unread {
  std::span<const std::byte> bytes;
};

int read_bytes(GifFileType* gif, GifByteType* to, int count) {
  auto& unread = *static_cast<Unread*>(gif->UserData);
  const std::size_t read = std::min(unread.bytes.size(), static_cast<std::size_t>(count));
  std::ranges::copy(unread.bytes.first(read), reinterpret_cast<std::byte*>(to));
  unread.bytes = unread.bytes.subspan(read);
  return static_cast<int>(read);
}

struct CloseGif {
  void operator()(GifFileType* gif) const {
    int ignored = 0;
    DGifCloseFile(gif, &ignored);
  }
};

Error damaged_gif(const PictureFile& file, int error) {
  const char* const text = GifErrorString(error);
  return damaged_picture(file, text == nullptr ? "its GIF data is not valid" : text);
}

// The palette index of transparent pixels in the extensions before the first picture, or -1.
// Stops at the picture's record.
Result<int> transparent_index(GifFileType* gif, const PictureFile& file) {
  int transparent = NO_TRANSPARENT_COLOR;
  for (;;) {
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &record) == GIF_ERROR) return damaged_gif(file, gif->Error);
    if (record == IMAGE_DESC_RECORD_TYPE) return transparent;
    if (record != EXTENSION_RECORD_TYPE) return damaged_picture(file, "it has no picture");
    int code = 0;
    GifByteType* block = nullptr;  // its length, then its bytes
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) return damaged_gif(file, gif->Error);
    while (block != nullptr) {
      GraphicsControlBlock control;
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        transparent = control.TransparentColor;
      }
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) return damaged_gif(file, gif->Error);
    }
  }
}

// The order in which rows are stored.
std::vector<int> stored_rows(int height, bool is_interlaced) {
  struct Pass {
    int first;
    int step;
  };

  constexpr Pass kPasses[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  std::vector<int> rows;
  for (const Pass& pass : kPasses) {
    for (int row = pass.first; is_interlaced && row < height; row += pass.step) rows.push_back(row);
  }
  for (int row = 0; !is_interlaced && row < height; ++row) rows.push_back(row);
  return rows;
}

// The first picture of the file on its canvas, which is black and transparent elsewhere.
struct Canvas {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::byte> rgba;
};

// REQUIRES: the picture's description has been read.
Result<Canvas> read_picture(GifFileType* gif, const PictureFile& file, int transparent) {
  const GifImageDesc& picture = gif->Image;
  Canvas canvas{std::max(gif->SWidth, picture.Left + picture.Width),
                std::max(gif->SHeight, picture.Top + picture.Height),
                {}};
  MOTLEY_TRY(check_picture_size(file, canvas.width, canvas.height));
  MOTLEY_TRY(check_picture_size(file, picture.Width, picture.Height));
  const ColorMapObject* colours = picture.ColorMap != nullptr ? picture.ColorMap : gif->SColorMap;
  if (colours == nullptr) return damaged_picture(file, "it has no palette");
  canvas.rgba.resize(pixel_bytes(canvas.width, canvas.height, kRgbaBytes));
  std::vector<GifPixelType> indexes(static_cast<std::size_t>(picture.Width));
  for (const int row : stored_rows(picture.Height, picture.Interlace)) {
    if (DGifGetLine(gif, indexes.data(), picture.Width) == GIF_ERROR) {
      return damaged_gif(file, gif->Error);
    }
    std::size_t to = pixel_bytes(canvas.width * (picture.Top + row) + picture.Left, 1, kRgbaBytes);
    for (const GifPixelType index : indexes) {
      if (index >= colours->ColorCount) {
        return damaged_picture(file, "it has colours outside of its palette");
      }
      const GifColorType& colour = colours->Colors[index];
      if (index != transparent) {
        canvas.rgba[to] = static_cast<std::byte>(colour.Red);
        canvas.rgba[to + 1] = static_cast<std::byte>(colour.Green);
        canvas.rgba[to + 2] = static_cast<std::byte>(colour.Blue);
        canvas.rgba[to + 3] = std::byte{255};
      }
      to += kRgbaBytes;
    }
  }
  return canvas;
}

}  // namespace

Result<DecodedPicture> decode_gif(const PictureFile& file) {
  Unread unread{file.bytes};
  int error = 0;
  const std::unique_ptr<GifFileType, CloseGif> gif(DGifOpen(&unread, read_bytes, &error));
  if (gif == nullptr) return damaged_gif(file, error);
  MOTLEY_ASSIGN(const int transparent, transparent_index(gif.get(), file));
  if (DGifGetImageDesc(gif.get()) == GIF_ERROR) return damaged_gif(file, gif->Error);
  MOTLEY_ASSIGN(const Canvas canvas, read_picture(gif.get(), file, transparent));
  return DecodedPicture{raster_of_rgba(canvas.width, canvas.height, file.channels, canvas.rgba)};
}

}  // namespace motley

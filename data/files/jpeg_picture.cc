#include <turbojpeg.h>

#include <memory>

#include "data/files/raster.h"

namespace motley {

Result<Raster> decode_jpeg(std::span<const std::byte> file, int channels, const std::string& path) {
  struct Destroy {
    void operator()(void* decoder) const { tjDestroy(decoder); }
  };

  const std::unique_ptr<void, Destroy> decoder(tjInitDecompress());
  if (decoder == nullptr) return damaged_picture(path, tjGetErrorStr2(nullptr));
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colours = 0;
  if (tjDecompressHeader3(decoder.get(), bytes, file.size(), &width, &height, &subsampling,
                          &colours) != 0) {
    return damaged_picture(path, tjGetErrorStr2(decoder.get()));
  }
  MOTLEY_TRY(check_picture_size(width, height, path));
  Raster raster{width, height, channels, {}};
  raster.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
                       static_cast<std::size_t>(channels));
  // The accurate transform yields the same bits on every processor. For a truncated file the
  // library would only warn and leave the rest grey.
  const int flags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  if (tjDecompress2(decoder.get(), bytes, file.size(),
                    reinterpret_cast<unsigned char*>(raster.pixels.data()), width, 0, height,
                    channels == 1 ? TJPF_GRAY : TJPF_RGB, flags) != 0) {
    return damaged_picture(path, tjGetErrorStr2(decoder.get()));
  }
  return raster;
}

}  // namespace motley

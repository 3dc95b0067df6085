#include "data/files/raster.h"

#include <fmt/format.h>

#include <string_view>

namespace motley {
namespace {

bool begins(std::span<const std::byte> file, std::string_view with) {
  return std::string_view(reinterpret_cast<const char*>(file.data()), file.size())
      .starts_with(with);
}

#if !defined(MOTLEY_WITH_PNG) || !defined(MOTLEY_WITH_JPEG)
Error no_library(const std::string& path, const char* format, const char* package) {
  return {ErrorCode::kData, fmt::format("cannot read {}", path),
          fmt::format("this build of motley has no library for {} files", format),
          fmt::format("apt-get install {}, then build again; or convert the pictures", package)};
}
#endif

}  // namespace

Error damaged_picture(const std::string& path, const std::string& cause) {
  return {ErrorCode::kData, fmt::format("unusable picture {}", path), cause,
          "convert it again, or remove it"};
}

Result<void> check_picture_size(std::int64_t width, std::int64_t height, const std::string& path) {
  if (width >= 1 && height >= 1 && width <= kPixelsMax / height) return {};
  return damaged_picture(path, fmt::format("it has {} x {} pixels; the limit is {} pixels", width,
                                           height, kPixelsMax));
}

Result<Raster> decode_picture(std::span<const std::byte> file,
                              [[maybe_unused]] int channels,
                              const std::string& path) {
  if (begins(file, "\x89PNG")) {
#ifdef MOTLEY_WITH_PNG
    return decode_png(file, channels, path);
#else
    return no_library(path, "PNG", "libpng-dev");
#endif
  }
  if (begins(file, "\xFF\xD8")) {
#ifdef MOTLEY_WITH_JPEG
    return decode_jpeg(file, channels, path);
#else
    return no_library(path, "JPEG", "libturbojpeg0-dev");
#endif
  }
  return damaged_picture(path, "it starts neither like a PNG nor like a JPEG file");
}

}  // namespace motley

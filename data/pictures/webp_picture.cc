#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>
#include <vector>

#include "data/pictures/picture_decoders.h"

namespace motley {
namespace {

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};

// The first frame of a file; a still picture has one.
class FirstFrame {
 public:
  explicit FirstFrame(WebPDemuxer* demuxer)
      : is_there_(WebPDemuxGetFrame(demuxer, 1, &iterator_) != 0) {}

  FirstFrame(const FirstFrame&) = delete;
  FirstFrame& operator=(const FirstFrame&) = delete;

  ~FirstFrame() { WebPDemuxReleaseIterator(&iterator_); }

  [[nodiscard]] bool is_whole() const { return is_there_ && iterator_.complete != 0; }

  [[nodiscard]] const WebPIterator& facts() const { return iterator_; }

 private:
  WebPIterator iterator_{};
  bool is_there_;
};

}  // namespace

Result<DecodedPicture> decode_webp(const PictureFile& file) {
  const WebPData bytes{reinterpret_cast<const std::uint8_t*>(file.bytes.data()), file.bytes.size()};
  const std::unique_ptr<WebPDemuxer, DeleteDemuxer> demuxer(WebPDemux(&bytes));
  if (demuxer == nullptr) return damaged_picture(file, "its WebP parts are not complete");
  const std::int64_t width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const std::int64_t height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  MOTLEY_TRY(check_picture_size(file, width, height));
  const FirstFrame frame(demuxer.get());
  const WebPIterator& facts = frame.facts();
  const bool is_inside = facts.x_offset >= 0 && facts.y_offset >= 0 && facts.width >= 1 &&
                         facts.height >= 1 && facts.x_offset + facts.width <= width &&
                         facts.y_offset + facts.height <= height;
  if (!frame.is_whole() || !is_inside) return damaged_picture(file, "its WebP frame is not valid");
  std::vector<std::byte> rgba(pixel_bytes(width, height, kRgbaBytes));
  const std::size_t row_bytes = pixel_bytes(width, 1, kRgbaBytes);
  const std::size_t begin = pixel_bytes(facts.x_offset, 1, kRgbaBytes) +
                            static_cast<std::size_t>(facts.y_offset) * row_bytes;
  if (WebPDecodeRGBAInto(facts.fragment.bytes, facts.fragment.size,
                         reinterpret_cast<std::uint8_t*>(rgba.data()) + begin, rgba.size() - begin,
                         static_cast<int>(row_bytes)) == nullptr) {
    return damaged_picture(file, "its WebP data cannot be decoded");
  }
  return DecodedPicture{raster_of_rgba(width, height, file.channels, rgba)};
}

}  // namespace motley

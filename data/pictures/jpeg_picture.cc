// jpeglib.h uses FILE without a declaration.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <array>
#include <csetjmp>
#include <string>
#include <utility>
#include <vector>

#include "data/pictures/picture_decoders.h"

namespace motley {
namespace {

constexpr int kScansMax = 500;  // a small file with more would take minutes
constexpr int kMarkerRst0 = 0xD0;
constexpr int kMarkerRst7 = 0xD7;

// What libjpeg reports. Its first member is libjpeg's, whose address libjpeg passes on.
struct Reports {
  jpeg_error_mgr base;
  std::jmp_buf escape;
  std::array<char, JMSG_LENGTH_MAX> message;
  bool has_stray_bytes;
  bool has_end;  // whether the file had an end marker where libjpeg looked for it
};

Reports& reports_of(j_common_ptr codec) {
  return *reinterpret_cast<Reports*>(codec->err);
}

[[noreturn]] void fail(j_common_ptr codec) {
  Reports& reports = reports_of(codec);
  codec->err->format_message(codec, reports.message.data());
  std::longjmp(reports.escape, 1);
}

// Whether the last `count` bytes that libjpeg has read are zeros. REQUIRES: it has not read an end
// marker in place of a missing one.
bool are_zero_before(j_common_ptr codec, int count) {
  const JOCTET* const end = reinterpret_cast<j_decompress_ptr>(codec)->src->next_input_byte;
  return std::all_of(end - count, end, [](JOCTET value) { return value == 0; });
}

// Warnings: libjpeg fills missing or invalid parts with grey and goes on. Only those about bytes
// that no part of the picture needs are no damage.
void report(j_common_ptr codec, int level) {
  if (level >= 0) return;  // not a warning
  Reports& reports = reports_of(codec);
  const auto* const numbers = codec->err->msg_parm.i;
  switch (codec->err->msg_code) {
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_NOT_SEQUENTIAL:
      return;
    case JWRN_JPEG_EOF:
      reports.has_end = false;
      return;
    case JWRN_EXTRANEOUS_DATA:
      if (numbers[1] >= kMarkerRst0 && numbers[1] <= kMarkerRst7) break;
      // Zeros are filling.
      if (!reports.has_end || !are_zero_before(codec, numbers[0])) reports.has_stray_bytes = true;
      return;
    default:
      break;
  }
  fail(codec);
}

// Decodes in steps that each return false after an error, with message(). libjpeg leaves a step by
// longjmp, so a step's frame has no objects with destructors.
class JpegDecoder {
 public:
  explicit JpegDecoder(std::span<const std::byte> file) : file_(file) {
    codec_.err = jpeg_std_error(&reports_.base);
    reports_.base.error_exit = fail;
    reports_.base.emit_message = report;
    reports_.base.output_message = [](j_common_ptr) {};
    reports_.has_stray_bytes = false;
    reports_.has_end = true;
  }

  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  ~JpegDecoder() {
    if (is_created_) jpeg_destroy_decompress(&codec_);
  }

  [[nodiscard]] bool read_header() {
    if (setjmp(reports_.escape) != 0) return false;
    jpeg_create_decompress(&codec_);
    is_created_ = true;
    jpeg_mem_src(&codec_, reinterpret_cast<const unsigned char*>(file_.data()),
                 static_cast<unsigned long>(file_.size()));
    jpeg_read_header(&codec_, TRUE);
    return true;
  }

  // Decides on the colours and reads all scans of a file that has several, so that a missing one is
  // found. The accurate transform yields the same bits on every processor.
  [[nodiscard]] bool read_scans(int channels) {
    if (setjmp(reports_.escape) != 0) return false;
    codec_.dct_method = JDCT_ISLOW;
    codec_.out_color_space = has_ink() ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    codec_.buffered_image = jpeg_has_multiple_scans(&codec_);
    note_components();
    jpeg_start_decompress(&codec_);
    if (!codec_.buffered_image) return true;
    while (!jpeg_input_complete(&codec_)) {
      if (jpeg_consume_input(&codec_) == JPEG_REACHED_SOS) note_components();
      if (codec_.input_scan_number > kScansMax) return say("it has too many scans");
    }
    if (!has_all_scans()) return say("a part of it is missing");
    jpeg_start_output(&codec_, codec_.input_scan_number);
    return true;
  }

  // REQUIRES: room for all rows.
  [[nodiscard]] bool read_rows(std::byte* pixels, std::size_t row_bytes) {
    if (setjmp(reports_.escape) != 0) return false;
    while (codec_.output_scanline < codec_.output_height) {
      auto* row = reinterpret_cast<JSAMPROW>(pixels + codec_.output_scanline * row_bytes);
      jpeg_read_scanlines(&codec_, &row, 1);
    }
    if (codec_.buffered_image) jpeg_finish_output(&codec_);
    jpeg_finish_decompress(&codec_);
    return true;
  }

  [[nodiscard]] std::int64_t width() const { return codec_.image_width; }

  [[nodiscard]] std::int64_t height() const { return codec_.image_height; }

  // Whether the rows are cyan, magenta, yellow and black.
  [[nodiscard]] bool has_ink() const {
    return codec_.jpeg_color_space == JCS_CMYK || codec_.jpeg_color_space == JCS_YCCK;
  }

  [[nodiscard]] bool has_stray_bytes() const { return reports_.has_stray_bytes; }

  [[nodiscard]] const char* message() const { return reports_.message.data(); }

 private:
  bool say(const char* text) {
    std::snprintf(reports_.message.data(), reports_.message.size(), "%s", text);
    return false;
  }

  // The components of the scan that begins.
  void note_components() {
    for (int i = 0; i < codec_.comps_in_scan; ++i) {
      seen_ |= 1U << codec_.cur_comp_info[i]->component_index;
    }
  }

  // Every component has a scan. Without an end marker, or with stray bytes that may have been a
  // scan, all bits of a progressive picture must also be there.
  [[nodiscard]] bool has_all_scans() const {
    if (seen_ != (1U << codec_.num_components) - 1) return false;
    if (codec_.coef_bits == nullptr) return reports_.has_end;
    const bool is_whole = reports_.has_end && !reports_.has_stray_bytes;
    for (int component = 0; component < codec_.num_components; ++component) {
      for (int k = 0; k < DCTSIZE2; ++k) {
        const int missing = codec_.coef_bits[component][k];  // bits; -1 = all
        if (is_whole ? k == 0 && missing < 0 : missing != 0) return false;
      }
    }
    return true;
  }

  std::span<const std::byte> file_;
  jpeg_decompress_struct codec_{};
  Reports reports_{};
  bool is_created_ = false;
  unsigned seen_ = 0;  // bit c: a scan of component c
};

// Files have the ink inverted: 255 is none.
Raster raster_of_ink(std::int64_t width,
                     std::int64_t height,
                     int channels,
                     std::span<const std::byte> light) {
  constexpr int kInks = 4;
  constexpr unsigned kWhole = 255;
  Raster raster{width, height, channels, {}};
  raster.pixels.resize(pixel_bytes(width, height, channels));
  const auto step = static_cast<std::size_t>(channels);
  for (std::size_t pixel = 0; pixel < light.size() / kInks; ++pixel) {
    const auto from = light.subspan(pixel * kInks, kInks);
    const auto through = [&](std::size_t ink) {
      return (2 * std::to_integer<unsigned>(from[ink]) * std::to_integer<unsigned>(from[3]) +
              kWhole) /
             (2 * kWhole);
    };
    write_pixel(std::span(raster.pixels).subspan(pixel * step, step), through(0), through(1),
                through(2));
  }
  return raster;
}

}  // namespace

Result<DecodedPicture> decode_jpeg(const PictureFile& file) {
  JpegDecoder decoder(file.bytes);
  if (!decoder.read_header()) return damaged_picture(file, decoder.message());
  const std::int64_t width = decoder.width();
  const std::int64_t height = decoder.height();
  MOTLEY_TRY(check_picture_size(file, width, height));
  if (!decoder.read_scans(file.channels)) return damaged_picture(file, decoder.message());
  const int samples = decoder.has_ink() ? 4 : file.channels;
  std::vector<std::byte> pixels(pixel_bytes(width, height, samples));
  if (!decoder.read_rows(pixels.data(), pixel_bytes(width, 1, samples))) {
    return damaged_picture(file, decoder.message());
  }
  Raster raster = decoder.has_ink() ? raster_of_ink(width, height, file.channels, pixels)
                                    : Raster{width, height, file.channels, std::move(pixels)};
  return DecodedPicture{std::move(raster), decoder.has_stray_bytes()};
}

}  // namespace motley

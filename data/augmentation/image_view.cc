#include "data/augmentation/image_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/philox.h"

namespace motley {
namespace {

// Each separates its draws from others with the same seed.
constexpr std::uint64_t kViewKey = 0x766965772064726F;
constexpr std::uint64_t kBoxKey = 0x726573697A656463;
constexpr std::uint64_t kColourKey = 0x636F6C6F75727320;
constexpr std::uint64_t kEraseKey = 0x6572617365642020;
constexpr std::uint64_t kEraseDecisionBlock = 1'000'000;

constexpr int kAttempts = 10;

bool wants(const DataConfig& data, const char* what) {
  return std::ranges::find(data.augment, what) != data.augment.end();
}

// Blocks 0, 1, … for one sample in one epoch.
class SampleDraws {
 public:
  SampleDraws(std::uint64_t key, std::uint64_t epoch, std::uint64_t sample) {
    const PhiloxBlock block = philox4x32(key, epoch, sample);
    key_ = std::uint64_t{block[1]} << 32 | block[0];
  }

  [[nodiscard]] PhiloxBlock block(std::uint64_t number) const {
    return philox4x32(key_, 0, number);
  }

 private:
  std::uint64_t key_;
};

double between(double low, double high, std::uint32_t word) {
  return low + (high - low) * to_open_unit(word);
}

// 0 … count - 1.
std::int64_t one_of(std::int64_t count, std::uint32_t word) {
  return static_cast<std::int64_t>(std::uint64_t{word} * static_cast<std::uint64_t>(count) >> 32);
}

// exp(x) for |x| < 2, by its series: C libraries' functions differ in the last bit.
double exponential(double x) {
  constexpr int kTerms = 30;
  double sum = 1;
  double term = 1;
  for (int n = 1; n < kTerms; ++n) {
    term = term * x / n;
    sum += term;
  }
  return sum;
}

// The ranges of a random box's share of the area, and of the logarithm of one side by the other.
struct BoxRange {
  double share_low;
  double share_high;
  double log_ratio_low;
  double log_ratio_high;
};

// torchvision's defaults: areas of 8 to 100 % with ratios of 3/4 to 4/3, and of 2 to 33 % with 0.3
// to 3.3.
constexpr BoxRange kResized{0.08, 1, -0.28768207245178085, 0.28768207245178085};
constexpr BoxRange kErased{0.02, 0.33, -1.2039728043259361, 1.1939224684724346};

struct Sides {
  std::int64_t first;  // the longer one, for a ratio above 1
  std::int64_t second;
};

Sides draw_sides(const BoxRange& range, double area, const PhiloxBlock& words) {
  const double wanted = area * between(range.share_low, range.share_high, words[0]);
  const double ratio = exponential(between(range.log_ratio_low, range.log_ratio_high, words[1]));
  return {std::lround(std::sqrt(wanted * ratio)), std::lround(std::sqrt(wanted / ratio))};
}

ImageBox placed(std::int64_t box_height,
                std::int64_t box_width,
                std::int64_t height,
                std::int64_t width,
                const PhiloxBlock& words) {
  return {one_of(height - box_height + 1, words[2]), one_of(width - box_width + 1, words[3]),
          box_height, box_width};
}

ImageBox draw_box(const SampleDraws& draws, std::int64_t height, std::int64_t width) {
  const auto area = static_cast<double>(height * width);
  for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    const PhiloxBlock words = draws.block(attempt);
    const Sides sides = draw_sides(kResized, area, words);  // width, height
    if (sides.first >= 1 && sides.first <= width && sides.second >= 1 && sides.second <= height) {
      return placed(sides.second, sides.first, height, width, words);
    }
  }
  // The middle, with the nearest ratio.
  const std::int64_t box_width = std::min(width, std::lround(static_cast<double>(height) * 4 / 3));
  const std::int64_t box_height = std::min(height, std::lround(static_cast<double>(width) * 4 / 3));
  return {(height - box_height) / 2, (width - box_width) / 2, box_height, box_width};
}

// In half of the draws.
std::optional<ImageBox> draw_erased(const SampleDraws& draws,
                                    std::int64_t height,
                                    std::int64_t width) {
  if (draws.block(kEraseDecisionBlock)[0] % 2 == 0) return std::nullopt;
  const auto area = static_cast<double>(height * width);
  for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    const PhiloxBlock words = draws.block(attempt);
    const Sides sides = draw_sides(kErased, area, words);  // height, width
    if (sides.first >= height || sides.second >= width) continue;
    return placed(sides.first, sides.second, height, width, words);
  }
  return std::nullopt;
}

ColourFactors draw_colours(const SampleDraws& draws) {
  constexpr double kLow = 0.6;
  constexpr double kHigh = 1.4;
  const PhiloxBlock words = draws.block(0);
  ColourFactors colours;
  for (std::size_t change = 0; change < colours.factors.size(); ++change) {
    colours.factors[change] = static_cast<float>(between(kLow, kHigh, words[change]));
  }
  const std::uint32_t order = words[3] % 6;
  std::swap(colours.order[0], colours.order[order % 3]);
  if (order >= 3) std::swap(colours.order[1], colours.order[2]);
  return colours;
}

}  // namespace

ViewDraw::ViewDraw(const DataConfig& data,
                   std::uint64_t seed,
                   std::int64_t height,
                   std::int64_t width)
    : seed_(seed),
      height_(height),
      width_(width),
      pixels_(wants(data, "crop") ? data.crop_pixels : 0),
      is_plain_(data.augment.empty()),
      flips_(wants(data, "flip")),
      resizes_(wants(data, "resized_crop")),
      colours_(wants(data, "color")),
      erases_(wants(data, "erase")) {}

ImageView ViewDraw::view(std::uint64_t epoch, std::uint64_t sample) const {
  const PhiloxBlock draw = philox4x32(seed_ ^ kViewKey, epoch, sample);
  const std::int64_t places = 2 * pixels_ + 1;
  ImageView view{draw[1] % places - pixels_, draw[2] % places - pixels_,
                 flips_ && draw[0] % 2 == 1};
  if (resizes_) view.box = draw_box({seed_ ^ kBoxKey, epoch, sample}, height_, width_);
  if (colours_) view.colours = draw_colours({seed_ ^ kColourKey, epoch, sample});
  if (erases_) view.erased = draw_erased({seed_ ^ kEraseKey, epoch, sample}, height_, width_);
  return view;
}

}  // namespace motley

#include "data/augmentation/image_planes.h"

#include <algorithm>
#include <span>

#include "base/check.h"

namespace motley {
namespace {

// New pixel i of a line is interpolated between pixels `low` and `high`.
struct Neighbours {
  std::size_t low = 0;
  std::size_t high = 0;
  float share_of_high = 0;
};

std::vector<Neighbours> neighbours(std::int64_t begin, std::int64_t from, std::int64_t to) {
  std::vector<Neighbours> line;
  for (std::int64_t i = 0; i < to; ++i) {
    // The centre of new pixel i is place / (2 × to) pixels after the first centre.
    const std::int64_t unit = 2 * to;
    const std::int64_t place =
        std::clamp<std::int64_t>((2 * i + 1) * from - to, 0, (from - 1) * unit);
    const std::int64_t low = place / unit;
    line.push_back({static_cast<std::size_t>(begin + low),
                    static_cast<std::size_t>(begin + std::min(low + 1, from - 1)),
                    static_cast<float>(place % unit) / static_cast<float>(unit)});
  }
  return line;
}

float blended(float low, float high, float share_of_high) {
  return low * (1 - share_of_high) + high * share_of_high;
}

std::span<const float> channel_of(const ImagePlanes& image, std::int64_t channel) {
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  return std::span(image.values).subspan(static_cast<std::size_t>(channel) * pixels, pixels);
}

float grey_at(const ImagePlanes& image, std::size_t pixel) {
  if (image.channels == 1) return image.values[pixel];
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  return 0.2989F * image.values[pixel] + 0.587F * image.values[pixels + pixel] +
         0.114F * image.values[2 * pixels + pixel];
}

// value -> factor × value + (1 - factor) × base
float away_from(float base, float value, float factor) {
  return std::clamp(factor * value + (1 - factor) * base, 0.0F, 1.0F);
}

void change(ImagePlanes& image, ColourChange kind, float factor) {
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  if (kind == ColourChange::kSaturation && image.channels == 1) return;
  double sum = 0;
  for (std::size_t pixel = 0; kind == ColourChange::kContrast && pixel < pixels; ++pixel) {
    sum += static_cast<double>(grey_at(image, pixel));
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(pixels));
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    const float base = kind == ColourChange::kSaturation ? grey_at(image, pixel) : mean;
    for (std::int64_t c = 0; c < image.channels; ++c) {
      float& value = image.values[static_cast<std::size_t>(c) * pixels + pixel];
      value = away_from(base, value, factor);
    }
  }
}

}  // namespace

ImagePlanes resized(const ImagePlanes& image, const ImageBox& box) {
  const auto rows = neighbours(box.top, box.height, image.height);
  const auto columns = neighbours(box.left, box.width, image.width);
  const auto width = static_cast<std::size_t>(image.width);
  ImagePlanes large{image.channels, image.height, image.width, {}};
  large.values.reserve(image.values.size());
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto plane = channel_of(image, c);
    for (const Neighbours& row : rows) {
      const auto upper = plane.subspan(row.low * width, width);
      const auto lower = plane.subspan(row.high * width, width);
      for (const Neighbours& column : columns) {
        const float above = blended(upper[column.low], upper[column.high], column.share_of_high);
        const float below = blended(lower[column.low], lower[column.high], column.share_of_high);
        large.values.push_back(blended(above, below, row.share_of_high));
      }
    }
  }
  return large;
}

ImagePlanes shifted(const ImagePlanes& image, const ImageView& view) {
  ImagePlanes seen{image.channels, image.height, image.width, {}};
  seen.values.reserve(image.values.size());
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto plane = channel_of(image, c);
    for (std::int64_t row = 0; row < image.height; ++row) {
      for (std::int64_t column = 0; column < image.width; ++column) {
        const std::int64_t y = row + view.down;
        const std::int64_t x = (view.mirrored ? image.width - 1 - column : column) + view.right;
        const bool is_inside = y >= 0 && y < image.height && x >= 0 && x < image.width;
        seen.values.push_back(is_inside ? plane[static_cast<std::size_t>(y * image.width + x)]
                                        : 0.0F);
      }
    }
  }
  return seen;
}

void change_colours(ImagePlanes& image, const ColourFactors& colours) {
  MOTLEY_CHECK(image.channels == 1 || image.channels == 3, "{} channels", image.channels);
  for (const ColourChange kind : colours.order) {
    change(image, kind, colours.factors.at(static_cast<std::size_t>(kind)));
  }
}

}  // namespace motley

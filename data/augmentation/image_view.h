// ImageView: random augmentation of an image sample, drawn anew each time. docs/formats/data.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "run_config/config.h"

namespace motley {

// A part of an image, in pixels.
struct ImageBox {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  friend bool operator==(const ImageBox&, const ImageBox&) = default;
};

enum class ColourChange : std::uint8_t { kBrightness, kContrast, kSaturation };

struct ColourFactors {
  std::array<float, 3> factors{1, 1, 1};  // [ColourChange]
  std::array<ColourChange, 3> order{ColourChange::kBrightness, ColourChange::kContrast,
                                    ColourChange::kSaturation};

  friend bool operator==(const ColourFactors&, const ColourFactors&) = default;
};

// First `box` is enlarged to the image's size. Then pixel (y, x) is pixel (y + down, x + right),
// black outside; then rows are reversed if `mirrored`. Then colours change, and values are
// normalised. Then `erased` becomes 0.
struct ImageView {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool mirrored = false;
  std::optional<ImageBox> box = std::nullopt;
  std::optional<ColourFactors> colours = std::nullopt;
  std::optional<ImageBox> erased = std::nullopt;

  friend bool operator==(const ImageView&, const ImageView&) = default;
};

// Draws views by data.augment: a pure function of (seed, epoch, sample) and the image's size, with
// the same bits on every machine.
class ViewDraw {
 public:
  // The size is not used by flip and crop.
  ViewDraw(const DataConfig& data, std::uint64_t seed, std::int64_t height, std::int64_t width);

  // Whether every view is the unchanged image.
  [[nodiscard]] bool is_plain() const { return is_plain_; }

  [[nodiscard]] ImageView view(std::uint64_t epoch, std::uint64_t sample) const;

 private:
  std::uint64_t seed_;
  std::int64_t height_;
  std::int64_t width_;
  std::int64_t pixels_;  // maximum shift in each direction
  bool is_plain_;
  bool flips_;
  bool resizes_;
  bool colours_;
  bool erases_;
};

}  // namespace motley

// ImageView: random augmentation of an image sample, drawn anew each time: an optional mirror
// image, and a shift by a few pixels. docs/formats/data.md.
#pragma once

#include <cstdint>

#include "run_config/config.h"

namespace motley {

// Pixel (y, x) of the view is pixel (y + down, x + right) of the image, black outside it; then rows
// are reversed if `mirrored`.
struct ImageView {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool mirrored = false;

  friend bool operator==(const ImageView&, const ImageView&) = default;
};

// Draws views by data.augment: a pure function of (seed, epoch, sample).
class ViewDraw {
 public:
  ViewDraw(const DataConfig& data, std::uint64_t seed);

  // Whether every view is the unchanged image.
  [[nodiscard]] bool is_plain() const { return !flips_ && pixels_ == 0; }

  [[nodiscard]] ImageView view(std::uint64_t epoch, std::uint64_t sample) const;

 private:
  std::uint64_t key_;
  bool flips_;
  std::int64_t pixels_;  // maximum shift in each direction
};

}  // namespace motley

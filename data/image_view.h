// ImageView: how a training sample of an image is seen, drawn anew each time: mirrored or not, and
// shifted by a few pixels. docs/formats/data.md.
#pragma once

#include <cstdint>

#include "job/config.h"

namespace motley {

// Pixel (y, x) of what is seen is pixel (y + down, x + right) of the image, black outside it; then
// rows are reversed where `mirrored`.
struct ImageView {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool mirrored = false;

  friend bool operator==(const ImageView&, const ImageView&) = default;
};

// Draws views as data.augment says: a pure function of (seed, epoch, sample).
class ViewDraw {
 public:
  ViewDraw(const DataConfig& data, std::uint64_t seed);

  // Whether every view is the whole image as it is.
  [[nodiscard]] bool is_plain() const { return !flips_ && pixels_ == 0; }

  [[nodiscard]] ImageView view(std::uint64_t epoch, std::uint64_t sample) const;

 private:
  std::uint64_t key_;
  bool flips_;
  std::int64_t pixels_;  // how far a view may be shifted in each direction
};

}  // namespace motley

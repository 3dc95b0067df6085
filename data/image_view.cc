#include "data/image_view.h"

#include <algorithm>

#include "base/philox.h"

namespace motley {
namespace {

// Separates these draws from others with the same seed.
constexpr std::uint64_t kViewKey = 0x766965772064726F;

bool wants(const DataConfig& data, const char* what) {
  return std::ranges::find(data.augment, what) != data.augment.end();
}

}  // namespace

ViewDraw::ViewDraw(const DataConfig& data, std::uint64_t seed)
    : key_(seed ^ kViewKey),
      flips_(wants(data, "flip")),
      pixels_(wants(data, "crop") ? data.crop_pixels : 0) {}

ImageView ViewDraw::view(std::uint64_t epoch, std::uint64_t sample) const {
  const PhiloxBlock draw = philox4x32(key_, epoch, sample);
  const std::int64_t places = 2 * pixels_ + 1;
  return {draw[1] % places - pixels_, draw[2] % places - pixels_, flips_ && draw[0] % 2 == 1};
}

}  // namespace motley

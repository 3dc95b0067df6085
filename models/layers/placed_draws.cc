#include "models/layers/placed_draws.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/layers/dropout.h"
#include "models/layers/tensor_dropout.h"
#include "models/random/tensor_draws.h"

namespace motley {

PlacedDraws::PlacedDraws(const MicroContext& micro, int layer, std::int64_t samples)
    : micro_(micro), layer_(layer) {
  MOTLEY_CHECK(samples >= 1 && micro.micro >= 0 && micro.first_sample >= 0,
               "{} samples of micro-batch {} from {} on", samples, micro.micro, micro.first_sample);
  batches_before_ = static_cast<std::uint64_t>(micro.first_sample / samples + micro.micro);
}

void PlacedDraws::mask(at::Tensor& ones, double p, int index) const {
  const DropoutStream stream(p, micro_, layer_, static_cast<DropoutSite>(index));
  if (ones.device().is_cpu()) {
    stream.apply(ones.data_ptr<float>(), ones.data_ptr<float>(), ones.numel(), 0);
  } else {
    drop_in_place(stream, ones);
  }
}

at::Tensor PlacedDraws::numbers(const DrawnNumbers& drawn,
                                const std::vector<std::int64_t>& sizes,
                                c10::Device device) const {
  const DrawStream stream(micro_.seed, micro_.training ? micro_.step : 0, layer_, drawn.index);
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const auto batch = drawn.batch_dim();
  if (!batch) return draw_numbers(stream, drawn, 0, count, device).view(sizes);
  // The numbers of a sample are consecutive in the stream, and so are the samples of all
  // micro-batches.
  std::vector<std::int64_t> samples_first = sizes;
  std::rotate(samples_first.begin(), samples_first.begin() + static_cast<std::ptrdiff_t>(*batch),
              samples_first.begin() + static_cast<std::ptrdiff_t>(*batch) + 1);
  const std::uint64_t first = batches_before_ * static_cast<std::uint64_t>(count);
  const at::Tensor made = draw_numbers(stream, drawn, first, count, device).view(samples_first);
  return made.movedim(0, static_cast<std::int64_t>(*batch)).contiguous();
}

}  // namespace motley

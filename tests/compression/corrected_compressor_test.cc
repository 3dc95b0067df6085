// GradientCompressor with momentum correction: the state that its messages depend on.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "compression/feedback/gradient_compressor.h"
#include "tests/compression/slices.h"
#include "tests/support/property.h"

namespace motley {
namespace {

struct Draw {
  CompressorOptions options;
  std::size_t count = 0;
};

Draw any_draw() {
  const char* chain = *rc::gen::element("topk(0.002)", "topk(0.01)|fp16", "topk(0.1)|int8|zstd(1)");
  return {{.chain = chain, .momentum = 0.9F, .warmup_steps = *rc::gen::element(0, 12)},
          *rc::gen::inRange<std::size_t>(1, 40'000)};
}

std::unique_ptr<GradientCompressor> compressor_of(const Draw& draw) {
  return std::move(GradientCompressor::make(draw.options, draw.count)).value();
}

Floats gradient_of(const Draw& draw, std::int64_t step) {
  return normal_slice(draw.count, static_cast<std::uint32_t>(step + 1));
}

Bytes sent(GradientCompressor& compressor, const Draw& draw, std::int64_t step) {
  Bytes wire(compressor.bytes_max());
  wire.resize(compressor.encode(gradient_of(draw, step), step, wire));
  return wire;
}

// So a checkpoint needs no thresholds.
RC_GTEST_PROP(CorrectedCompressor, GoesOnFromResidualAndVelocityAlone, ()) {
  const Draw draw = any_draw();
  const auto first = compressor_of(draw);
  const auto other = compressor_of(draw);
  const std::int64_t saved = *rc::gen::inRange(1, 8);
  for (std::int64_t step = 0; step < saved; ++step) sent(*first, draw, step);
  for (const FeedbackKind what : {FeedbackKind::kResidual, FeedbackKind::kVelocity}) {
    std::ranges::copy(first->state_array(what), other->state_array(what).begin());
  }
  for (std::int64_t step = saved; step < saved + 4; ++step) {
    RC_ASSERT(sent(*other, draw, step) == sent(*first, draw, step));
  }
}

// If the all-reduce has no other terms, momentum correction followed by encoding equals the
// combined operation.
RC_GTEST_PROP(CorrectedCompressor, CorrectsAndThenSendsWhatItWouldSendAtOnce, ()) {
  const Draw draw = any_draw();
  const auto at_once = compressor_of(draw);
  const auto apart = compressor_of(draw);
  for (std::int64_t step = 0; step < 4; ++step) {
    Floats gradient = gradient_of(draw, step);
    apart->apply_momentum(gradient);
    Bytes wire(apart->bytes_max());
    wire.resize(apart->encode_corrected(gradient, step, wire));
    RC_ASSERT(wire == sent(*at_once, draw, step));
  }
  RC_ASSERT(std::ranges::equal(apart->state_array(FeedbackKind::kVelocity),
                               at_once->state_array(FeedbackKind::kVelocity)));
}

}  // namespace
}  // namespace motley

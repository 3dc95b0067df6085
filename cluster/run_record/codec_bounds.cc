#include "cluster/run_record/codec_bounds.h"

#include "compression/make_codec.h"

namespace motley {

Result<CodecBounds> CodecBounds::of(const Plan& plan) {
  CodecBounds bounds;
  MOTLEY_ASSIGN(bounds.codecs_["none"], make_codec("none"));
  MOTLEY_ASSIGN(bounds.codecs_[plan.gradient_codec], make_codec(plan.gradient_codec));
  if (plan.rounds) {
    MOTLEY_ASSIGN(bounds.codecs_[plan.rounds->codec], make_codec(plan.rounds->codec));
  }
  for (const ChunkPlan& chunk : plan.chunks) {
    MOTLEY_ASSIGN(bounds.codecs_[chunk.codec], make_codec(chunk.codec));
  }
  return bounds;
}

double CodecBounds::payload_bytes(const std::string& codec, std::int64_t values) const {
  return static_cast<double>(codecs_.at(codec)->bytes_max(static_cast<std::size_t>(values)));
}

}  // namespace motley

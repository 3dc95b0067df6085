#include "partitioner/cost/resident_state.h"

#include "compression/codec_chain.h"

namespace motley {

int feedback_per_encoded(const ResidentState& process_state, const std::string& gradient_codec) {
  const auto chain = parse_codec_chain(gradient_codec);
  if (!process_state.has_residual || (chain.ok() && !chain->lossy())) return 0;
  const bool is_topk = chain.ok() && chain->density.has_value();
  return is_topk && process_state.velocity ? 2 : 1;
}

}  // namespace motley

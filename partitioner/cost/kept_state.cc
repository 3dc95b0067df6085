#include "partitioner/cost/kept_state.h"

#include "compression/codec_chain.h"

namespace motley {

int kept_per_encoded(const KeptState& kept, const std::string& gradient_codec) {
  const auto chain = parse_codec_chain(gradient_codec);
  if (!kept.unsent || (chain.ok() && !chain->lossy())) return 0;
  const bool is_topk = chain.ok() && chain->density.has_value();
  return is_topk && kept.velocity ? 2 : 1;
}

}  // namespace motley

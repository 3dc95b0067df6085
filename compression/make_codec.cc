#include "compression/make_codec.h"

#include "compression/codec_chain.h"

namespace motley {

Result<std::unique_ptr<const Codec>> make_codec(const std::string& chain) {
  MOTLEY_ASSIGN(const CodecChain parsed, parse_codec_chain(chain));
  return make_chain_codec(parsed, parsed.density.value_or(1));
}

}  // namespace motley

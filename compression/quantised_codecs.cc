#include "compression/quantised_codecs.h"

#include "compression/block_quantise.h"
#include "compression/fixed_size_codec.h"

namespace motley {

std::unique_ptr<const Codec> make_int8_codec() {
  const BlockKernels& kernels = best_block_kernels();
  return make_fixed_size_codec({"int8", int8_bytes, kernels.int8_encode, kernels.int8_decode});
}

std::unique_ptr<const Codec> make_int4_codec() {
  const BlockKernels& kernels = best_block_kernels();
  return make_fixed_size_codec({"int4", int4_bytes, kernels.int4_encode, kernels.int4_decode});
}

}  // namespace motley

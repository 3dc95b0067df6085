#include "compression/quantised_formats.h"

#include "compression/block_quantise.h"

namespace motley {

FixedSizeFormat int8_format() {
  const BlockKernels& kernels = best_block_kernels();
  return {"int8", int8_bytes, kernels.int8_encode, kernels.int8_decode};
}

FixedSizeFormat int4_format() {
  const BlockKernels& kernels = best_block_kernels();
  return {"int4", int4_bytes, kernels.int4_encode, kernels.int4_decode};
}

}  // namespace motley

#include "compression/formats/quantised_formats.h"

#include "compression/facts/codec_facts.h"
#include "compression/formats/block_quantise.h"

namespace motley {

FixedSizeFormat int8_format() {
  return {best_int8_kernels(), codec_facts(CodecKind::kInt8).name, int8_bytes};
}

FixedSizeFormat int4_format() {
  return {best_int4_kernels(), codec_facts(CodecKind::kInt4).name, int4_bytes};
}

}  // namespace motley

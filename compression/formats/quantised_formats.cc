#include "compression/formats/quantised_formats.h"

#include "compression/formats/block_quantise.h"

namespace motley {

FixedSizeFormat int8_format() {
  return {best_int8_kernels(), "int8", int8_bytes};
}

FixedSizeFormat int4_format() {
  return {best_int4_kernels(), "int4", int4_bytes};
}

}  // namespace motley

// The chain link topk(DENSITY), with the format of the selected values.
#pragma once

#include <memory>

#include "compression/codec/codec.h"
#include "compression/codec/fixed_size_codec.h"

namespace motley {

struct SparseOptions {
  double density = 0;      // of encode(): 0 < density <= 1
  double density_max = 0;  // of decoded messages and of bytes_max(); at least density
  FixedSizeFormat format;  // of the selected values
};

// The codec has no residual, and takes its threshold from a sample of each message: values that are
// not sent are lost. compression/feedback/gradient_compressor.h sends them later.
[[nodiscard]] std::unique_ptr<const Codec> make_sparse_codec(const SparseOptions& options);

}  // namespace motley

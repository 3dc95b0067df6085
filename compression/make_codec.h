// Makes a codec from its name, a chain such as "topk(0.01)|fp16|zstd(1)".
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "compression/codec/codec.h"

namespace motley {

// kConfig, naming the known codecs, if `chain` is not one. "auto" is not a codec: the planner
// replaces it.
[[nodiscard]] Result<std::unique_ptr<const Codec>> make_codec(const std::string& chain);

}  // namespace motley

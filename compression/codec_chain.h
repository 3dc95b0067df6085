// A codec chain as text, "topk(0.01)|fp16|zstd(1)", and parsed.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "compression/codec/codec.h"
#include "compression/codec/fixed_size_codec.h"

namespace motley {

// Why such a chain is not allowed at a boundary, for error messages.
inline constexpr const char* kWhyForGradientsOnly =
    "topk leaves out most of a message, which only all-reduces of gradients send later";

struct CodecChain {
  std::optional<double> density;  // topk: 0 < density <= 1; without it all values are sent
  FixedSizeFormat format;         // of the values sent
  int zstd_level = 0;             // 0: no zstd

  // Returns whether decoded values may differ from the encoded ones.
  [[nodiscard]] bool lossy() const;

  // Returns whether messages omit most values, so that only senders with error feedback
  // (compression/feedback/gradient_compressor.h) can use it.
  [[nodiscard]] bool for_gradients_only() const { return density.has_value(); }
};

// kConfig, with replacement codecs, if the chain begins with a codec of an earlier version; plans,
// profiles and checkpoints of that version may contain it.
[[nodiscard]] std::optional<Error> removed_codec(const std::string& chain);

// kConfig, naming the known codecs, if the text is not a chain.
[[nodiscard]] Result<CodecChain> parse_codec_chain(const std::string& text);

// density_max: the highest density of decoded messages, for a sender that warms up to the chain's
// density. REQUIRES: not below the chain's density.
[[nodiscard]] std::unique_ptr<const Codec> make_chain_codec(const CodecChain& chain,
                                                            double density_max);

}  // namespace motley

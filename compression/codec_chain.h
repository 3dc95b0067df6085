// A chain as text, "topk(0.01)|fp16|zstd(1)", and as the values that it stands for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "compression/codec/codec.h"
#include "compression/codec/fixed_size_codec.h"

namespace motley {

// Why such a chain may not be a boundary's, as errors say it.
inline constexpr const char* kWhyForGradientsOnly =
    "topk leaves out most of a message, which only sums of gradients send later";

struct CodecChain {
  std::optional<double> density;  // of topk, 0 < density <= 1; without it every value is sent
  FixedSizeFormat format;         // of the values that are sent
  int zstd_level = 0;             // 0: not packed

  // Returns whether a message may mean other values than it was made of.
  [[nodiscard]] bool lossy() const;

  // Returns whether messages leave out most of what they are made of, so that only a sender that
  // adds it to its next ones (compression/feedback/gradient_compressor.h) has use for it.
  [[nodiscard]] bool for_gradients_only() const { return density.has_value(); }
};

// kConfig, with the codecs to use instead, where the chain begins with a codec that earlier
// versions had; their plans, profiles and checkpoints may name it.
[[nodiscard]] std::optional<Error> removed_codec(const std::string& chain);

// kConfig, naming the known codecs, when it is not a chain.
[[nodiscard]] Result<CodecChain> parse_codec_chain(const std::string& text);

// density_max: of messages that are decoded, for a sender whose density falls to that of the chain.
// REQUIRES: not below the chain's density.
[[nodiscard]] std::unique_ptr<const Codec> make_chain_codec(const CodecChain& chain,
                                                            double density_max);

}  // namespace motley

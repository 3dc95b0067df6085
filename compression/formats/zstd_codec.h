// The last link of a chain: the inner codec's output as one Zstandard frame (RFC 8878) that
// declares its content size.
#pragma once

#include <memory>
#include <span>

#include "compression/codec/codec.h"

struct ZSTD_CCtx_s;

namespace motley {

inline constexpr int kZstdLevelMin = 1;
inline constexpr int kZstdLevelMax = 19;

// Compresses bytes as the last link does. Holds about a megabyte; one thread at a time.
class ZstdPacker {
 public:
  // REQUIRES: kZstdLevelMin <= level <= kZstdLevelMax.
  explicit ZstdPacker(int level);

  [[nodiscard]] static std::size_t bytes_max(std::size_t content_bytes);

  // Returns the bytes written. REQUIRES: frame_B.size() >= bytes_max(content_B.size()).
  std::size_t pack(std::span<const std::byte> content_B, std::span<std::byte> frame_B);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };

  int level_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
};

// REQUIRES: kZstdLevelMin <= level <= kZstdLevelMax. A frame that declares more content than the
// inner codec's bytes_max() is rejected before decompression; the inner codec checks the rest.
[[nodiscard]] std::unique_ptr<const Codec> make_zstd_codec(std::unique_ptr<const Codec> inner,
                                                           int level);

}  // namespace motley

// Noise: values with the statistics of gradients and activations for a codec, generated at memory
// speed.
//
// A table of normally distributed values is drawn once. A piece of noise is a section of the table,
// multiplied by a factor between 1/4 and 4: pieces differ as a model's tensors do, and contain no
// repeated bytes that a compressor could find. Section and factor are a function of (key, stream,
// piece), as all random numbers here (base/philox.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace motley {

class Noise {
 public:
  static constexpr std::size_t kPiece = 4096;  // values

  explicit Noise(std::uint64_t key);

  // Fills a piece. REQUIRES: at most kPiece values.
  void fill(std::span<float> values, std::uint64_t stream, std::uint64_t piece) const;

  // Fills any number of values, piece by piece from 0 on.
  void fill_all(std::span<float> values, std::uint64_t stream) const;

 private:
  std::uint64_t key_;
  std::vector<float> table_;
};

}  // namespace motley

// SampleMaker: converts stored samples to model inputs: bytes of pixels become floats, integers of
// any width become 32-bit words. docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/files/columns.h"
#include "data/image_view.h"
#include "models/spec/sample_format.h"
#include "run_config/config.h"

namespace motley {

// Immutable and safe to share between threads.
class SampleMaker {
 public:
  // kData if the samples' types or shapes do not match the model's, or data.mean, data.std and
  // data.augment do not match the samples.
  [[nodiscard]] static Result<SampleMaker> make(const DataConfig& data,
                                                const SampleFormat& format,
                                                const Examples& examples);

  // REQUIRES: `stored` is a sample of the examples' inputs (targets), its integers are within the
  // format's limits; `words` has the format's length.
  void write_input(std::span<const std::byte> stored, std::span<std::int32_t> words) const;
  void write_target(std::span<const std::byte> stored, std::span<std::int32_t> words) const;

  // Applies `view` to the image. REQUIRES also: data.augment is not empty.
  void write_input(std::span<const std::byte> stored,
                   const ImageView& view,
                   std::span<std::int32_t> words) const;

 private:
  // value -> (value - mean) / std of the channels, in order; a single one applies to all.
  struct Channel {
    float mean = 0;
    float deviation = 1;
    std::vector<std::int32_t> word_of_byte;  // of the 256 pixel values; empty for other types
    std::int32_t black = 0;                  // the word of pixels outside the image
  };

  SampleMaker(ElementType input, ElementType target, const SampleFormat& format);

  void set_channels(const DataConfig& data, Dtype wanted);
  [[nodiscard]] const Channel& channel(std::size_t index) const;
  void write_run(std::span<const std::byte> stored,
                 const Channel& channel,
                 std::span<std::int32_t> words) const;

  ElementType input_type_;
  ElementType target_type_;
  std::vector<std::int64_t> input_shape_;  // the model's
  bool normalises_ = false;
  std::vector<Channel> channels_;  // at least one
};

}  // namespace motley

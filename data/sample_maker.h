// SampleMaker: what a model takes, made of what lies in files: bytes of pixels become floats,
// integers of any width become words. docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/files/columns.h"
#include "data/image_view.h"
#include "job/config.h"
#include "models/spec/sample_format.h"

namespace motley {

// Immutable and safe to share between threads.
class SampleMaker {
 public:
  // kData where the samples' types or shapes are not the model's, or data.mean, data.std and
  // data.augment do not fit them.
  [[nodiscard]] static Result<SampleMaker> make(const DataConfig& data,
                                                const SampleFormat& format,
                                                const Examples& examples);

  // REQUIRES: `stored` is a sample of the examples' inputs (targets) whose integers are within the
  // format's limits; `words` is as long as the format says.
  void write_input(std::span<const std::byte> stored, std::span<std::int32_t> words) const;
  void write_target(std::span<const std::byte> stored, std::span<std::int32_t> words) const;

  // As `view` shows the image. REQUIRES: besides, data.augment is not empty.
  void write_input(std::span<const std::byte> stored,
                   const ImageView& view,
                   std::span<std::int32_t> words) const;

 private:
  // value -> (value - mean) / std of the channels, in order; one for all where there is one.
  struct Channel {
    float mean = 0;
    float deviation = 1;
    std::vector<std::int32_t> word_of_byte;  // of the 256 bytes of pixels; empty for other types
    std::int32_t black = 0;                  // the word of what is outside an image
  };

  SampleMaker(ElementType input, ElementType target, const SampleFormat& format);

  void set_channels(const DataConfig& data, NumberType wanted);
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

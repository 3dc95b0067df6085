// SampleMaker: converts stored samples to model inputs: bytes of pixels become floats, integers of
// any width become 32-bit words. docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "data/augmentation/image_view.h"
#include "data/files/columns.h"
#include "models/spec/sample_format.h"
#include "run_config/config.h"

namespace motley {

// Converts one of the inputs. Immutable.
class InputMaker {
 public:
  // `normalised`: with its data.mean and data.std, if they are set; nullptr: without.
  InputMaker(ElementType stored, const TensorSpec& wanted, const DataConfig* normalised);

  // The elements of a sample, each a word.
  [[nodiscard]] std::size_t words() const { return words_; }

  [[nodiscard]] std::span<const std::int64_t> shape() const { return shape_; }

  // REQUIRES: `stored` is a sample of the column, its integers are within the input's limit;
  // `words` has words().
  void write(std::span<const std::byte> stored, std::span<std::int32_t> words) const;

  // Applies `view`. REQUIRES also: the input is an image.
  void write(std::span<const std::byte> stored,
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

  [[nodiscard]] const Channel& channel(std::size_t index) const;
  // Only the shift and the mirroring of a view.
  void write_shifted(std::span<const std::byte> stored,
                     const ImageView& view,
                     std::span<std::int32_t> words) const;
  // All but `erased`.
  void write_changed(std::span<const std::byte> stored,
                     const ImageView& view,
                     std::span<std::int32_t> words) const;
  void write_run(std::span<const std::byte> stored,
                 const Channel& channel,
                 std::span<std::int32_t> words) const;

  ElementType stored_;
  std::vector<std::int64_t> shape_;  // the model's
  std::size_t words_;
  bool normalises_ = false;
  std::vector<Channel> channels_;  // at least one
};

// Immutable and safe to share between threads.
class SampleMaker {
 public:
  // kData if the samples' types or shapes do not match the model's, or data.mean, data.std and
  // data.augment do not match the samples. REQUIRES: `examples` has the inputs of `format`.
  [[nodiscard]] static Result<SampleMaker> make(const DataConfig& data,
                                                const SampleFormat& format,
                                                const Examples& examples);

  // The words of all inputs of a sample, one input after the other. REQUIRES: `examples` has the
  // types and shapes of those of make(), integers are within the format's limits; `words` has the
  // format's length; with a `view`, which is applied to the image, data.augment is not empty.
  void write_inputs(const Examples& examples,
                    std::uint64_t sample,
                    std::span<std::int32_t> words,
                    const ImageView* view = nullptr) const;

  // [channels, height, width] of the input that data.augment applies to. REQUIRES: data.augment is
  // not empty.
  [[nodiscard]] std::span<const std::int64_t> image_shape() const {
    return inputs_[image_.value()].shape();
  }

  void write_target(const Examples& examples,
                    std::uint64_t sample,
                    std::span<std::int32_t> words) const;

 private:
  SampleMaker(std::vector<InputMaker> inputs, std::optional<std::size_t> image, ElementType target)
      : inputs_(std::move(inputs)), image_(image), target_type_(target) {}

  std::vector<InputMaker> inputs_;
  std::optional<std::size_t> image_;  // the input that data.mean and data.augment apply to
  ElementType target_type_;
};

}  // namespace motley

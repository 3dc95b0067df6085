#include "data/sample_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "data/augmentation/check_image.h"
#include "data/augmentation/image_planes.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are little-endian");

constexpr std::size_t kByteValueCount = 256;

// Shapes match if they differ only in dimensions of 1: [28, 28] is [1, 28, 28].
std::vector<std::int64_t> without_ones(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> kept;
  std::ranges::copy_if(shape, std::back_inserter(kept),
                       [](std::int64_t size) { return size != 1; });
  return kept;
}

std::string wanted_text(const TensorSpec& wanted) {
  const char* const type = wanted.type == Dtype::kFloat32 ? "float32"
                           : wanted.type == Dtype::kBool  ? "truth values"
                                                          : "integers";
  return fmt::format("{} of {}", shape_text(wanted.shape), type);
}

Error unfit(std::string_view what,
            const Column& column,
            const TensorSpec& wanted,
            const std::string& remedy) {
  return {ErrorCode::kData,
          fmt::format("the {}s do not fit the model, {}", what, column.runs().front().file),
          fmt::format("one {} is {} of {}; the model needs {}", what, shape_text(column.shape()),
                      element_name(column.type()), wanted_text(wanted)),
          remedy};
}

Result<void> check_shape(std::string_view what,
                         const Column& column,
                         const TensorSpec& wanted,
                         bool is_next_token) {
  if (without_ones(column.shape()) == without_ones(wanted.shape)) return {};
  return unfit(what, column, wanted,
               is_next_token ? "use rows with the model's number of tokens, or data.kind = "
                               "\"text\" or \"tokens\", which are cut into such rows"
                             : "use data of the model's shape, or a model for this shape");
}

Result<void> check_type(std::string_view what, const Column& column, const TensorSpec& wanted) {
  const bool takes_floats = wanted.type == Dtype::kFloat32;
  const bool has_floats = column.type() == ElementType::kFloat32;
  const bool is_pixels = what == "input" && column.type() == ElementType::kUint8;
  if (takes_floats == has_floats || (takes_floats && is_pixels)) return {};
  const char* const type = takes_floats                  ? "float32"
                           : wanted.type == Dtype::kBool ? "bool"
                                                         : "int64";
  return unfit(what, column, wanted,
               fmt::format("save them as {}: numpy.save(name, a.astype('{}'))", type, type));
}

template <class T>
void copy_integers(std::span<const std::byte> stored, std::span<std::int32_t> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    T value;
    std::memcpy(&value, stored.data() + i * sizeof value, sizeof value);
    words[i] = static_cast<std::int32_t>(value);
  }
}

void copy_words(std::span<const std::byte> stored, std::span<std::int32_t> words) {
  std::memcpy(words.data(), stored.data(), words.size_bytes());
}

// For stored types that need no arithmetic.
void copy_stored(ElementType type,
                 std::span<const std::byte> stored,
                 std::span<std::int32_t> words) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
      return copy_integers<std::uint8_t>(stored, words);
    case ElementType::kInt8:
      return copy_integers<std::int8_t>(stored, words);
    case ElementType::kInt16:
      return copy_integers<std::int16_t>(stored, words);
    case ElementType::kInt64:
      return copy_integers<std::int64_t>(stored, words);
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return copy_words(stored, words);
  }
}

}  // namespace

InputMaker::InputMaker(ElementType stored, const TensorSpec& wanted, const DataConfig* normalised)
    : stored_(stored),
      shape_(wanted.shape),
      words_(static_cast<std::size_t>(wanted.count())),
      normalises_(normalised != nullptr && !normalised->mean.empty()) {
  channels_.resize(normalises_ ? normalised->mean.size() : 1);
  if (wanted.type != Dtype::kFloat32) return;
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    Channel& here = channels_[c];
    if (normalises_) {
      here.mean = static_cast<float>(normalised->mean[c]);
      here.deviation = static_cast<float>(normalised->std[c]);
    }
    const auto word = [&](float value) {
      return std::bit_cast<std::int32_t>((value - here.mean) / here.deviation);
    };
    here.black = word(0);
    if (stored_ != ElementType::kUint8) continue;
    for (std::size_t byte = 0; byte < kByteValueCount; ++byte) {
      here.word_of_byte.push_back(word(static_cast<float>(byte) / 255.0F));
    }
  }
}

const InputMaker::Channel& InputMaker::channel(std::size_t index) const {
  return channels_.size() == 1 ? channels_.front() : channels_[index];
}

void InputMaker::write_run(std::span<const std::byte> stored,
                           const Channel& channel,
                           std::span<std::int32_t> words) const {
  if (!channel.word_of_byte.empty()) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = channel.word_of_byte[std::to_integer<std::size_t>(stored[i])];
    }
    return;
  }
  copy_stored(stored_, stored, words);
  if (!normalises_) return;
  for (std::int32_t& word : words) {
    const float value = (std::bit_cast<float>(word) - channel.mean) / channel.deviation;
    word = std::bit_cast<std::int32_t>(value);
  }
}

void InputMaker::write(std::span<const std::byte> stored, std::span<std::int32_t> words) const {
  const std::size_t count = words.size() / channels_.size();
  const std::size_t bytes = count * element_bytes(stored_);
  MOTLEY_CHECK(stored.size() == channels_.size() * bytes, "{} bytes for {} words", stored.size(),
               words.size());
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    write_run(stored.subspan(c * bytes, bytes), channels_[c], words.subspan(c * count, count));
  }
}

void InputMaker::write_shifted(std::span<const std::byte> stored,
                               const ImageView& view,
                               std::span<std::int32_t> words) const {
  const std::int64_t height = shape_[1];
  const std::int64_t width = shape_[2];
  const auto element = static_cast<std::int64_t>(element_bytes(stored_));
  MOTLEY_CHECK(std::cmp_equal(words.size() * element_bytes(stored_), stored.size()),
               "{} bytes for {} words", stored.size(), words.size());
  // Columns of the view that are inside the image.
  const std::int64_t first = std::max<std::int64_t>(0, -view.right);
  const std::int64_t seen = std::max<std::int64_t>(0, width - std::abs(view.right));
  for (std::int64_t row = 0; row < shape_[0] * height; ++row) {
    const Channel& here = channel(static_cast<std::size_t>(row / height));
    const auto out =
        words.subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
    const std::int64_t y = row % height + view.down;
    std::ranges::fill(out, here.black);
    if (y >= 0 && y < height) {
      const std::int64_t from = (row + view.down) * width + first + view.right;
      write_run(stored.subspan(static_cast<std::size_t>(from * element),
                               static_cast<std::size_t>(seen * element)),
                here, out.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(seen)));
    }
    if (view.mirrored) std::ranges::reverse(out);
  }
}

void InputMaker::write_changed(std::span<const std::byte> stored,
                               const ImageView& view,
                               std::span<std::int32_t> words) const {
  ImagePlanes image{shape_[0], shape_[1], shape_[2], std::vector<float>(words.size())};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (stored_ == ElementType::kUint8) {
      image.values[i] = static_cast<float>(std::to_integer<int>(stored[i])) / 255.0F;
    } else {
      std::memcpy(&image.values[i], stored.data() + i * sizeof(float), sizeof(float));
    }
  }
  if (view.box) image = resized(image, *view.box);
  image = shifted(image, view);
  if (view.colours) change_colours(image, *view.colours);
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Channel& here = channel(i / pixels);
    words[i] = std::bit_cast<std::int32_t>((image.values[i] - here.mean) / here.deviation);
  }
}

void InputMaker::write(std::span<const std::byte> stored,
                       const ImageView& view,
                       std::span<std::int32_t> words) const {
  if (view.box || view.colours) {
    write_changed(stored, view, words);
  } else {
    write_shifted(stored, view, words);
  }
  if (!view.erased) return;
  const ImageBox& box = *view.erased;
  for (std::int64_t channel = 0; channel < shape_[0]; ++channel) {
    for (std::int64_t y = box.top; y < box.top + box.height; ++y) {
      const std::int64_t begin = (channel * shape_[1] + y) * shape_[2] + box.left;
      std::ranges::fill(
          words.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(box.width)), 0);
    }
  }
}

Result<SampleMaker> SampleMaker::make(const DataConfig& data,
                                      const SampleFormat& format,
                                      const Examples& examples) {
  MOTLEY_CHECK(format.inputs.size() == examples.inputs.size(), "{} inputs, not {}",
               examples.inputs.size(), format.inputs.size());
  const std::optional<std::size_t> image = image_of(format);
  std::vector<InputMaker> makers;
  for (std::size_t k = 0; k < format.inputs.size(); ++k) {
    const Column& column = examples.inputs[k];
    const TensorSpec& wanted = format.inputs[k].tensor;
    MOTLEY_TRY(check_shape("input", column, wanted, format.is_next_token));
    MOTLEY_TRY(check_type("input", column, wanted));
    makers.emplace_back(column.type(), wanted, k == image ? &data : nullptr);
  }
  MOTLEY_TRY(check_shape("target", examples.targets, format.target, format.is_next_token));
  MOTLEY_TRY(check_type("target", examples.targets, format.target));
  MOTLEY_TRY(check_image(data, format, examples));
  return SampleMaker(std::move(makers), image, examples.targets.type());
}

void SampleMaker::write_inputs(const Examples& examples,
                               std::uint64_t sample,
                               std::span<std::int32_t> words,
                               const ImageView* view) const {
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const auto stored = examples.inputs[k].at(sample);
    const auto out = words.first(inputs_[k].words());
    words = words.subspan(out.size());
    view != nullptr&& k == image_ ? inputs_[k].write(stored, *view, out)
                                  : inputs_[k].write(stored, out);
  }
}

void SampleMaker::write_target(const Examples& examples,
                               std::uint64_t sample,
                               std::span<std::int32_t> words) const {
  const auto stored = examples.targets.at(sample);
  MOTLEY_CHECK(stored.size() == words.size() * element_bytes(target_type_), "{} bytes for {} words",
               stored.size(), words.size());
  copy_stored(target_type_, stored, words);
}

}  // namespace motley

#include "data/sample_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"

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
  const bool floats = wanted.type == Dtype::kFloat32;
  return fmt::format("{} of {}", shape_text(wanted.shape), floats ? "float32" : "integers");
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

Result<void> check_shape(std::string_view what, const Column& column, const SampleFormat& format) {
  const TensorSpec& wanted = what == "input" ? format.input : format.target;
  if (without_ones(column.shape()) == without_ones(wanted.shape)) return {};
  return unfit(what, column, wanted,
               format.is_next_token ? "use rows with the model's number of tokens, or data.kind = "
                                      "\"text\" or \"tokens\", which are cut into such rows"
                                    : "use data of the model's shape, or a model for this shape");
}

Result<void> check_type(std::string_view what, const Column& column, const TensorSpec& wanted) {
  const bool takes_floats = wanted.type == Dtype::kFloat32;
  const bool has_floats = column.type() == ElementType::kFloat32;
  const bool is_pixels = what == "input" && column.type() == ElementType::kUint8;
  if (takes_floats == has_floats || (takes_floats && is_pixels)) return {};
  return unfit(what, column, wanted,
               takes_floats ? "save them as float32: numpy.save(name, a.astype('float32'))"
                            : "save them as int64: numpy.save(name, a.astype('int64'))");
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
    case ElementType::kUint8:
      return copy_integers<std::uint8_t>(stored, words);
    case ElementType::kInt64:
      return copy_integers<std::int64_t>(stored, words);
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return copy_words(stored, words);
  }
}

Result<void> check_normalisation(const DataConfig& data,
                                 const SampleFormat& format,
                                 const Column& inputs) {
  if (data.mean.empty()) return {};
  if (format.input.type != Dtype::kFloat32) {
    return with_key({ErrorCode::kData, "data.mean and data.std do not fit the model",
                     "its inputs are integers", "leave out data.mean and data.std"},
                    "data.mean");
  }
  const std::int64_t channels = format.input.shape.empty() ? 1 : format.input.shape.front();
  if (data.mean.size() == 1 || std::cmp_equal(data.mean.size(), channels)) return {};
  return with_key(
      {ErrorCode::kData,
       fmt::format("data.mean and data.std do not fit the inputs, {}", inputs.runs().front().file),
       fmt::format("they have {} numbers for {} channels, the first of {}", data.mean.size(),
                   channels, shape_text(format.input.shape)),
       "give one number, or one for each channel"},
      "data.mean");
}

Result<void> check_augmentation(const DataConfig& data, const SampleFormat& format) {
  if (data.augment.empty()) return {};
  const auto& shape = format.input.shape;
  if (shape.size() != 3) {
    return with_key(
        {ErrorCode::kData, "data.augment does not fit the model",
         fmt::format("its input is {}; images are [channels, height, width]", shape_text(shape)),
         "leave out data.augment"},
        "data.augment");
  }
  const std::int64_t side = std::min(shape[1], shape[2]);
  const bool crops = std::ranges::find(data.augment, "crop") != data.augment.end();
  if (!crops || data.crop_pixels < side) return {};
  return with_key({ErrorCode::kData, "data.crop_pixels does not fit the model",
                   fmt::format("a shift by {} pixels leaves nothing of {}", data.crop_pixels,
                               shape_text(shape)),
                   fmt::format("set it below {}", side)},
                  "data.crop_pixels");
}

}  // namespace

Result<SampleMaker> SampleMaker::make(const DataConfig& data,
                                      const SampleFormat& format,
                                      const Examples& examples) {
  MOTLEY_TRY(check_shape("input", examples.inputs, format));
  MOTLEY_TRY(check_type("input", examples.inputs, format.input));
  MOTLEY_TRY(check_shape("target", examples.targets, format));
  MOTLEY_TRY(check_type("target", examples.targets, format.target));
  MOTLEY_TRY(check_normalisation(data, format, examples.inputs));
  MOTLEY_TRY(check_augmentation(data, format));
  SampleMaker maker(examples.inputs.type(), examples.targets.type(), format);
  maker.set_channels(data, format.input.type);
  return maker;
}

SampleMaker::SampleMaker(ElementType input, ElementType target, const SampleFormat& format)
    : input_type_(input), target_type_(target), input_shape_(format.input.shape) {}

void SampleMaker::set_channels(const DataConfig& data, Dtype wanted) {
  normalises_ = !data.mean.empty();
  channels_.resize(std::max<std::size_t>(1, data.mean.size()));
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    Channel& here = channels_[c];
    if (wanted != Dtype::kFloat32) continue;
    if (normalises_) {
      here.mean = static_cast<float>(data.mean[c]);
      here.deviation = static_cast<float>(data.std[c]);
    }
    const auto word = [&](float value) {
      return std::bit_cast<std::int32_t>((value - here.mean) / here.deviation);
    };
    here.black = word(0);
    if (input_type_ != ElementType::kUint8) continue;
    for (std::size_t byte = 0; byte < kByteValueCount; ++byte) {
      here.word_of_byte.push_back(word(static_cast<float>(byte) / 255.0F));
    }
  }
}

const SampleMaker::Channel& SampleMaker::channel(std::size_t index) const {
  return channels_.size() == 1 ? channels_.front() : channels_[index];
}

void SampleMaker::write_run(std::span<const std::byte> stored,
                            const Channel& channel,
                            std::span<std::int32_t> words) const {
  if (!channel.word_of_byte.empty()) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = channel.word_of_byte[std::to_integer<std::size_t>(stored[i])];
    }
    return;
  }
  copy_stored(input_type_, stored, words);
  if (!normalises_) return;
  for (std::int32_t& word : words) {
    const float value = (std::bit_cast<float>(word) - channel.mean) / channel.deviation;
    word = std::bit_cast<std::int32_t>(value);
  }
}

void SampleMaker::write_input(std::span<const std::byte> stored,
                              std::span<std::int32_t> words) const {
  const std::size_t count = words.size() / channels_.size();
  const std::size_t bytes = count * element_bytes(input_type_);
  MOTLEY_CHECK(stored.size() == channels_.size() * bytes, "{} bytes for {} words", stored.size(),
               words.size());
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    write_run(stored.subspan(c * bytes, bytes), channels_[c], words.subspan(c * count, count));
  }
}

void SampleMaker::write_input(std::span<const std::byte> stored,
                              const ImageView& view,
                              std::span<std::int32_t> words) const {
  const std::int64_t height = input_shape_[1];
  const std::int64_t width = input_shape_[2];
  const auto element = static_cast<std::int64_t>(element_bytes(input_type_));
  MOTLEY_CHECK(std::cmp_equal(words.size() * element_bytes(input_type_), stored.size()),
               "{} bytes for {} words", stored.size(), words.size());
  // Columns of the view that are inside the image.
  const std::int64_t first = std::max<std::int64_t>(0, -view.right);
  const std::int64_t seen = std::max<std::int64_t>(0, width - std::abs(view.right));
  for (std::int64_t row = 0; row < input_shape_[0] * height; ++row) {
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

void SampleMaker::write_target(std::span<const std::byte> stored,
                               std::span<std::int32_t> words) const {
  MOTLEY_CHECK(stored.size() == words.size() * element_bytes(target_type_), "{} bytes for {} words",
               stored.size(), words.size());
  copy_stored(target_type_, stored, words);
}

}  // namespace motley

#include "data/augmentation/check_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace motley {
namespace {

Error no_image(const char* key) {
  return with_key({ErrorCode::kData, fmt::format("{} does not fit the model", key),
                   "its inputs are several, of which not exactly one is of floats",
                   fmt::format("leave out {}", key)},
                  key);
}

Result<void> check_normalisation(const DataConfig& data,
                                 const TensorSpec& wanted,
                                 const Column& column) {
  if (wanted.type != Dtype::kFloat32) {
    return with_key({ErrorCode::kData, "data.mean and data.std do not fit the model",
                     "its inputs are integers", "leave out data.mean and data.std"},
                    "data.mean");
  }
  const std::int64_t channels = wanted.shape.empty() ? 1 : wanted.shape.front();
  if (data.mean.size() == 1 || std::cmp_equal(data.mean.size(), channels)) return {};
  return with_key(
      {ErrorCode::kData,
       fmt::format("data.mean and data.std do not fit the inputs, {}", column.runs().front().file),
       fmt::format("they have {} numbers for {} channels, the first of {}", data.mean.size(),
                   channels, shape_text(wanted.shape)),
       "give one number, or one for each channel"},
      "data.mean");
}

// Whether data.augment changes values, which flip and crop do not.
bool changes_values(const DataConfig& data) {
  return std::ranges::any_of(data.augment, [](const std::string& how) {
    return how == "resized_crop" || how == "color" || how == "erase";
  });
}

Result<void> check_value_changes(const DataConfig& data,
                                 const TensorSpec& wanted,
                                 ElementType stored) {
  if (changes_values(data) && wanted.type != Dtype::kFloat32) {
    return with_key({ErrorCode::kData, "data.augment does not fit the model",
                     "its inputs are integers; resized_crop, color and erase need floats",
                     "leave them out; flip and crop fit"},
                    "data.augment");
  }
  if (std::ranges::find(data.augment, "color") == data.augment.end()) return {};
  const std::int64_t channels = wanted.shape.front();
  if (stored == ElementType::kUint8 && (channels == 1 || channels == 3)) return {};
  return with_key(
      {ErrorCode::kData, "data.augment = [\"color\"] does not fit the data",
       fmt::format("it needs pixels in bytes, grey or red, green and blue; these are {} "
                   "of {} channels",
                   element_name(stored), channels),
       "leave out color, or save the images as uint8"},
      "data.augment");
}

Result<void> check_augmentation(const DataConfig& data, std::span<const std::int64_t> shape) {
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

std::optional<std::size_t> image_of(const SampleFormat& format) {
  if (format.inputs.size() == 1) return 0;
  const auto is_float = [](const SampleInput& input) {
    return input.tensor.type == Dtype::kFloat32;
  };
  if (std::ranges::count_if(format.inputs, is_float) != 1) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::find_if(format.inputs, is_float) -
                                  format.inputs.begin());
}

Result<void> check_image(const DataConfig& data,
                         const SampleFormat& format,
                         const Examples& examples) {
  const std::optional<std::size_t> image = image_of(format);
  if (!image && !data.mean.empty()) return no_image("data.mean");
  if (!image && !data.augment.empty()) return no_image("data.augment");
  if (!image) return {};
  const TensorSpec& wanted = format.inputs[*image].tensor;
  if (!data.mean.empty()) {
    MOTLEY_TRY(check_normalisation(data, wanted, examples.inputs[*image]));
  }
  if (data.augment.empty()) return {};
  MOTLEY_TRY(check_augmentation(data, wanted.shape));
  return check_value_changes(data, wanted, examples.inputs[*image].type());
}

}  // namespace motley

#include "data/data_remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_set>

#include "base/hash.h"
#include "data/source.h"

namespace motley {
namespace {

constexpr std::uint64_t kLookedAt = 4096;          // samples examined
constexpr std::uint64_t kSignificantSamples = 16;  // fewer may be equal by chance

// Calls look(index) for up to kLookedAt evenly spread samples until it returns false. Returns
// whether all calls returned true.
template <class Look>
bool for_samples(std::uint64_t samples, const Look& look) {
  const std::uint64_t count = std::min(samples, kLookedAt);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!look(i * (samples / count))) return false;
  }
  return true;
}

float float_at(std::span<const std::byte> bytes, std::size_t element) {
  float value = 0;
  std::memcpy(&value, bytes.data() + element * sizeof value, sizeof value);
  return value;
}

std::size_t elements_of(const Column& column) {
  return column.sample_bytes() / element_bytes(column.type());
}

const std::string& file_of(const Column& column) {
  return column.runs().front().file;
}

// Detects labels that were not shifted. Ignored targets are skipped.
std::optional<std::string> targets_that_are_inputs(const Column& inputs,
                                                   const Column& targets,
                                                   const TensorSpec& wanted_input,
                                                   const SampleFormat& format) {
  const std::size_t elements = elements_of(targets);
  const bool are_integers =
      wanted_input.type == Dtype::kInt64 && format.target.type == Dtype::kInt64;
  if (!are_integers || elements < 2 || elements != elements_of(inputs)) return std::nullopt;
  std::uint64_t compared = 0;
  const bool equal = for_samples(inputs.size(), [&](std::uint64_t sample) {
    const auto input = inputs.at(sample);
    const auto target = targets.at(sample);
    for (std::size_t k = 0; k < elements; ++k) {
      const std::int64_t wanted = integer_at(targets.type(), target, k);
      if (wanted == format.ignored_target) continue;
      if (wanted != integer_at(inputs.type(), input, k)) return false;
      ++compared;
    }
    return true;
  });
  if (!equal || compared < kSignificantSamples) return std::nullopt;
  return fmt::format(
      "the targets equal the inputs, {}: the model learns to copy its input; targets for next "
      "tokens are the inputs shifted by one place, unless the loss shifts them",
      file_of(targets));
}

// For integer targets: detects samples without targets, and data of a single class.
void look_at_integer_targets(const Column& targets,
                             const SampleFormat& format,
                             std::vector<std::string>& lines) {
  constexpr std::uint64_t kSignificantPart = 100;
  const std::size_t elements = elements_of(targets);
  std::uint64_t without = 0;
  std::optional<std::int64_t> only;
  bool is_one = true;
  for (std::uint64_t sample = 0; sample < targets.size(); ++sample) {
    const auto target = targets.at(sample);
    bool has_any = false;
    for (std::size_t k = 0; k < elements; ++k) {
      const std::int64_t value = integer_at(targets.type(), target, k);
      if (value == format.ignored_target) continue;
      has_any = true;
      is_one = is_one && value == only.value_or(value);
      only = value;
      if (!is_one) break;
    }
    without += has_any ? 0 : 1;
  }
  if (without * kSignificantPart > targets.size()) {
    lines.push_back(fmt::format(
        "{} of {} samples have no target, {}: all their targets are {}, which the loss ignores",
        without, targets.size(), file_of(targets), *format.ignored_target));
  }
  if (is_one && only && targets.size() - without >= kSignificantSamples) {
    lines.push_back(
        fmt::format("all targets are {}, {}: there is only one class", *only, file_of(targets)));
  }
}

std::optional<std::string> equal_samples(const char* what, const Column& column) {
  if (column.size() < kSignificantSamples) return std::nullopt;
  const auto first = column.at(0);
  const bool equal = for_samples(column.size(), [&](std::uint64_t sample) {
    return std::ranges::equal(column.at(sample), first);
  });
  if (!equal) return std::nullopt;
  const bool are_zero = std::ranges::all_of(first, [](std::byte b) { return b == std::byte{0}; });
  return fmt::format("all samples have the same {}{}, {}", what, are_zero ? ", zeros" : "",
                     file_of(column));
}

// Detects pixel values that are stored in another scale than training expects.
std::optional<std::string> pixels_of_another_scale(const Column& inputs,
                                                   const TensorSpec& wanted,
                                                   const DataConfig& data) {
  constexpr std::size_t kImageElements = 64;
  constexpr float kBrightPixel = 128;
  constexpr float kBrightestPixel = 255;
  const std::size_t elements = elements_of(inputs);
  const bool is_image = wanted.shape.size() >= 2 && elements >= kImageElements;
  if (wanted.type != Dtype::kFloat32 || !data.mean.empty()) return std::nullopt;
  if (inputs.type() == ElementType::kUint8) {
    bool has_one = false;
    const bool are_flags = for_samples(inputs.size(), [&](std::uint64_t sample) {
      return std::ranges::all_of(inputs.at(sample), [&](std::byte b) {
        has_one = has_one || b == std::byte{1};
        return b <= std::byte{1};
      });
    });
    if (!are_flags || !has_one) return std::nullopt;
    return fmt::format(
        "the inputs are bytes of 0 and 1, {}: as pixels they become 0 and 1/255; save them as "
        "float32 for 0 and 1",
        file_of(inputs));
  }
  if (inputs.type() != ElementType::kFloat32 || !is_image) return std::nullopt;
  float largest = 0;
  const bool are_bytes = for_samples(inputs.size(), [&](std::uint64_t sample) {
    const auto bytes = inputs.at(sample);
    for (std::size_t k = 0; k < elements; ++k) {
      const float value = float_at(bytes, k);
      if (!(value >= 0 && value <= kBrightestPixel) || value != std::floor(value)) return false;
      largest = std::max(largest, value);
    }
    return true;
  });
  if (!are_bytes || largest < kBrightPixel) return std::nullopt;
  return fmt::format(
      "the inputs are integers up to {}, {}: unscaled pixels? Save them as uint8 to scale them to "
      "0 to 1, or scale floats with data.mean and data.std",
      largest, file_of(inputs));
}

std::size_t input_bytes(const Examples& examples) {
  std::size_t bytes = 0;
  for (const Column& column : examples.inputs) bytes += column.sample_bytes();
  return bytes;
}

std::uint64_t hash_of_inputs(const Examples& examples, std::uint64_t sample) {
  if (examples.inputs.size() == 1) return hash64(examples.inputs.front().at(sample));
  std::vector<std::uint64_t> hashes;
  for (const Column& column : examples.inputs) hashes.push_back(hash64(column.at(sample)));
  return hash64(std::as_bytes(std::span(hashes)));
}

// Detects held-out samples that are also trained on, unless samples repeat anyway.
std::optional<std::string> held_out_that_is_trained(const ExampleFiles& files) {
  constexpr std::size_t kSignificantBytes = 32;
  constexpr std::uint64_t kTrainBytesMax = std::uint64_t{1} << 30;
  const Examples& train = files.train;
  const std::size_t sample_bytes = input_bytes(train);
  if (!files.held_out || sample_bytes < kSignificantBytes ||
      train.size() * sample_bytes > kTrainBytesMax) {
    return std::nullopt;
  }
  std::unordered_set<std::uint64_t> known;
  for (std::uint64_t sample = 0; sample < train.size(); ++sample) {
    known.insert(hash_of_inputs(train, sample));
  }
  if (known.size() * 10 < train.size() * 9) return std::nullopt;
  const Examples& held_out = *files.held_out;
  std::uint64_t looked_at = 0;
  std::uint64_t found = 0;
  for_samples(held_out.size(), [&](std::uint64_t sample) {
    ++looked_at;
    found += known.contains(hash_of_inputs(held_out, sample)) ? 1 : 0;
    return true;
  });
  if (found * 2 < looked_at || looked_at < kSignificantSamples) return std::nullopt;
  return fmt::format(
      "{} of {} held-out samples are also training samples, {}: the held-out loss measures "
      "memorization",
      found, looked_at, file_of(held_out.inputs.front()));
}

}  // namespace

std::vector<std::string> example_remarks(const ExampleFiles& files,
                                         const DataConfig& data,
                                         const SampleFormat& format) {
  std::vector<std::string> lines = files.notes;
  const auto add = [&](std::optional<std::string> line) {
    if (line) lines.push_back(*std::move(line));
  };
  const Examples& train = files.train;
  for (std::size_t k = 0; k < train.inputs.size(); ++k) {
    add(targets_that_are_inputs(train.inputs[k], train.targets, format.inputs[k].tensor, format));
  }
  // One of several inputs, such as a mask, may well be the same in all samples.
  if (train.inputs.size() == 1) add(equal_samples("input", train.inputs.front()));
  if (format.target.type == Dtype::kInt64) {
    look_at_integer_targets(files.train.targets, format, lines);
  } else {
    add(equal_samples("target", files.train.targets));
  }
  for (std::size_t k = 0; k < train.inputs.size(); ++k) {
    add(pixels_of_another_scale(train.inputs[k], format.inputs[k].tensor, data));
  }
  add(held_out_that_is_trained(files));
  return lines;
}

std::vector<std::string> corpus_remarks(const Corpus& corpus, const DataConfig& data) {
  std::vector<std::string> lines = corpus.remarks();
  const auto count = static_cast<std::size_t>(std::min(corpus.size(), kLookedAt));
  std::vector<std::int32_t> tokens_T(count);
  corpus.copy(0, tokens_T);
  if (count < kSignificantSamples) return lines;
  if (std::ranges::count(tokens_T, tokens_T.front()) == std::ssize(tokens_T)) {
    lines.push_back(
        fmt::format("the first {} tokens are all {}, {}", count, tokens_T.front(), data.path));
    return lines;
  }
  std::size_t zeros = 0;  // at odd positions
  for (std::size_t i = 1; i < count; i += 2) zeros += tokens_T[i] == 0 ? 1 : 0;
  if (zeros == count / 2) {
    lines.push_back(fmt::format(
        "every second one of the first {} tokens is 0, {}: is the dtype twice as wide as {}?",
        count, data.path, token_type_name(corpus.type())));
  }
  return lines;
}

std::vector<std::string> training_remarks(const Source& source, const TrainConfig& train) {
  std::vector<std::string> lines = source.remarks();
  const auto batch = static_cast<std::uint64_t>(train.global_batch);
  if (source.train_samples() < batch) {
    lines.push_back(fmt::format(
        "{} training samples are fewer than train.global_batch = {}: every step trains on some of "
        "them repeatedly; use more data or a smaller batch",
        source.train_samples(), batch));
  }
  if (train.eval_every > 0 && source.eval_samples() < batch) {
    lines.push_back(fmt::format(
        "{} held-out samples are fewer than train.global_batch = {}: an evaluation counts some of "
        "them repeatedly",
        source.eval_samples(), batch));
  }
  return lines;
}

std::optional<std::string> held_out_text_that_is_trained(const Corpus& train,
                                                         const Corpus& held_out,
                                                         const DataConfig& data) {
  constexpr std::size_t kSearchedBytesMax = std::size_t{256} << 20;
  constexpr std::size_t kPassages = 8;
  constexpr std::size_t kPassageBytes = 256;
  const auto is_trained = [&](std::span<const std::byte> passage) {
    std::size_t left = kSearchedBytesMax;
    for (std::size_t part = 0; part < train.parts(); ++part) {
      const auto all = train.bytes(part);
      const auto searched = all.first(std::min(all.size(), left));
      left -= searched.size();
      if (::memmem(searched.data(), searched.size(), passage.data(), passage.size()) != nullptr) {
        return true;
      }
    }
    return false;
  };
  const std::span<const std::byte> bytes = held_out.bytes();
  if (bytes.size() < kPassages * kPassageBytes) return std::nullopt;
  const std::size_t stride = bytes.size() / kPassages / sizeof(std::int64_t) * sizeof(std::int64_t);
  std::size_t found = 0;
  for (std::size_t k = 0; k < kPassages; ++k) {
    found += is_trained(bytes.subspan(k * stride, kPassageBytes)) ? 1 : 0;
    if (2 * (k + 1 - found) > kPassages) return std::nullopt;  // as usual, without a further search
  }
  return fmt::format(
      "{} of {} passages of the held-out tokens are also training tokens, {}: the held-out loss "
      "measures memorization",
      found, kPassages, data.holdout_path);
}

}  // namespace motley

#include "data/value_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace motley {
namespace {

struct Place {
  std::uint64_t sample = 0;   // in its file
  std::uint64_t element = 0;  // in its sample
  std::int64_t value = 0;
};

// Samples are passed as 32-bit words.
bool is_within(std::int64_t value, const ValueLimits& limits) {
  using Word = std::numeric_limits<std::int32_t>;
  if (value < Word::min() || value > Word::max()) return false;
  if (!limits.limit || value == limits.ignored) return true;
  return value >= 0 && value < *limits.limit;
}

// The lowest and the highest allowed value, except for the ignored one.
std::pair<std::int64_t, std::int64_t> allowed(const ValueLimits& limits) {
  using Word = std::numeric_limits<std::int32_t>;
  if (!limits.limit) return {Word::min(), Word::max()};
  return {0, *limits.limit - 1};
}

std::string remedy_for(const ValueLimits& limits, std::int64_t value) {
  constexpr std::int64_t kTruthValues = 2;
  if (!limits.limit) return "correct the data; integers of samples have 32 bits";
  if (value < 0 || *limits.limit == kTruthValues) return "correct the data";
  return fmt::format("correct the data, or use a model with {} values", value + 1);
}

template <class T>
std::optional<Place> find_outside_limits(const Column& column,
                                         const Column::Run& run,
                                         const ValueLimits& limits,
                                         ProgressCounter* work) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;  // between two progress reports
  std::uint64_t unsaid_bytes = 0;
  for (std::uint64_t sample = 0; sample < run.samples; ++sample) {
    const auto bytes = run.bytes.subspan(sample * run.distance_bytes, column.sample_bytes());
    for (std::uint64_t element = 0; element < bytes.size() / sizeof(T); ++element) {
      T value;
      std::memcpy(&value, bytes.data() + element * sizeof value, sizeof value);
      if (!is_within(value, limits)) return Place{sample, element, value};
    }
    unsaid_bytes += bytes.size();
    if (work != nullptr && (unsaid_bytes >= kPieceBytes || sample + 1 == run.samples)) {
      work->add_bytes(unsaid_bytes);
      unsaid_bytes = 0;
    }
  }
  return std::nullopt;
}

std::optional<Place> find_outside_limits(const Column& column,
                                         const Column::Run& run,
                                         const ValueLimits& limits,
                                         ProgressCounter* work) {
  switch (column.type()) {
    case ElementType::kBool:
    case ElementType::kUint8:
      return find_outside_limits<std::uint8_t>(column, run, limits, work);
    case ElementType::kInt8:
      return find_outside_limits<std::int8_t>(column, run, limits, work);
    case ElementType::kInt16:
      return find_outside_limits<std::int16_t>(column, run, limits, work);
    case ElementType::kInt32:
      return find_outside_limits<std::int32_t>(column, run, limits, work);
    case ElementType::kInt64:
      return find_outside_limits<std::int64_t>(column, run, limits, work);
    case ElementType::kFloat32:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Result<void> check_any_target(const Column& targets, std::optional<std::int64_t> ignored) {
  if (!ignored || targets.type() == ElementType::kFloat32) return {};
  for (std::uint64_t sample = 0; sample < targets.size(); ++sample) {
    const auto target = targets.at(sample);
    for (std::size_t k = 0; k < target.size() / element_bytes(targets.type()); ++k) {
      if (integer_at(targets.type(), target, k) != *ignored) return {};
    }
  }
  return Error{ErrorCode::kData, fmt::format("no targets, {}", targets.runs().front().file),
               fmt::format("all of them are {}, which the loss ignores", *ignored),
               "save the targets that the model should predict"};
}

Result<void> check_values(const char* what,
                          const Column& column,
                          const ValueLimits& limits,
                          ProgressCounter* work) {
  std::optional<ProgressCounter::Task> reading;
  if (work != nullptr) {
    reading.emplace(*work, "reading the data", column.size() * column.sample_bytes());
  }
  for (const Column::Run& run : column.runs()) {
    const auto outside = find_outside_limits(column, run, limits, work);
    if (!outside) continue;
    const std::string ignored =
        limits.ignored ? fmt::format(" or {}, which the loss ignores", *limits.ignored) : "";
    const auto [low, high] = allowed(limits);
    return Error{ErrorCode::kData,
                 fmt::format("the {}s are not all within the model's limits, {}", what, run.file),
                 fmt::format("number {} of sample {} is {}; the model allows {} to {}{}",
                             outside->element, outside->sample, outside->value, low, high, ignored),
                 remedy_for(limits, outside->value)};
  }
  return {};
}

}  // namespace motley

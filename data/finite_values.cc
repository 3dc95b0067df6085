#include "data/finite_values.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace motley {
namespace {

// Exponent bits that are all set only in infinities and NaNs.
constexpr std::uint32_t kExponent = 0x7F800000U;

std::uint32_t float_bits(std::span<const std::byte> bytes, std::size_t index) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * sizeof bits, sizeof bits);
  return bits;
}

// Branch-free, limited by memory bandwidth.
bool are_finite(std::span<const std::byte> bytes) {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
    found |= (float_bits(bytes, i) & kExponent) == kExponent ? 1U : 0U;
  }
  return found == 0;
}

// The result for one file.
struct NonFinite {
  std::string first;
  std::uint64_t samples = 0;
};

void add_sample(NonFinite& found, std::uint64_t sample, std::span<const std::byte> bytes) {
  if (found.samples++ > 0) return;
  std::size_t element = 0;
  while ((float_bits(bytes, element) & kExponent) != kExponent) ++element;
  const auto value = std::bit_cast<float>(float_bits(bytes, element));
  found.first = fmt::format("number {} of sample {} is {}", element, sample,
                            std::isnan(value) ? "NaN"
                            : value > 0       ? "infinity"
                                              : "-infinity");
}

NonFinite find_non_finite(const Column& column, const Column::Run& run, ProgressCounter* work) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;  // between two progress reports
  NonFinite found;
  std::uint64_t unsaid_bytes = 0;
  for (std::uint64_t sample = 0; sample < run.samples; ++sample) {
    const auto bytes = run.bytes.subspan(sample * run.distance_bytes, column.sample_bytes());
    if (!are_finite(bytes)) add_sample(found, sample, bytes);
    unsaid_bytes += bytes.size();
    if (work != nullptr && (unsaid_bytes >= kPieceBytes || sample + 1 == run.samples)) {
      work->add_bytes(unsaid_bytes);
      unsaid_bytes = 0;
    }
  }
  return found;
}

}  // namespace

Result<void> check_finite(const char* what, const Column& column, ProgressCounter* work) {
  if (column.type() != ElementType::kFloat32) return {};
  std::optional<ProgressCounter::Task> reading;
  if (work != nullptr) {
    reading.emplace(*work, "reading the data", column.size() * column.sample_bytes());
  }
  for (const Column::Run& run : column.runs()) {
    const NonFinite found = find_non_finite(column, run, work);
    if (found.samples == 0) continue;
    return Error{ErrorCode::kData,
                 fmt::format("the {}s are not all finite numbers, {}", what, run.file),
                 fmt::format("{}; {} of {} samples have NaN or infinity", found.first,
                             found.samples, run.samples),
                 "correct or remove these samples (numpy.isfinite finds them), or set "
                 "data.allow_nonfinite = true to train with them"};
  }
  return {};
}

}  // namespace motley

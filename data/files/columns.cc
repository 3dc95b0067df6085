#include "data/files/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace motley {

std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kInt16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kInt64:
      return 8;
  }
  return 0;
}

std::string_view element_name(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return "bool";
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kFloat32:
      return "float32";
  }
  return "";
}

std::int64_t integer_at(ElementType type, std::span<const std::byte> bytes, std::size_t element) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, bytes.data() + element * sizeof value, sizeof value);
    return static_cast<std::int64_t>(value);
  };
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
      return read(std::uint8_t{});
    case ElementType::kInt8:
      return read(std::int8_t{});
    case ElementType::kInt16:
      return read(std::int16_t{});
    case ElementType::kInt32:
      return read(std::int32_t{});
    case ElementType::kInt64:
    case ElementType::kFloat32:
      break;
  }
  return read(std::int64_t{});
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Column::Column(ElementType type, std::vector<std::int64_t> shape, std::vector<Run> runs)
    : type_(type),
      shape_(std::move(shape)),
      sample_bytes_(
          std::accumulate(shape_.begin(), shape_.end(), element_bytes(type), std::multiplies<>())),
      runs_(std::move(runs)),
      firsts_{0} {
  for (const Run& run : runs_) {
    MOTLEY_CHECK(run.samples == 0 ||
                     run.bytes.size() >= (run.samples - 1) * run.distance_bytes + sample_bytes_,
                 "{} samples of {} bytes in {}", run.samples, sample_bytes_, run.bytes.size());
    firsts_.push_back(firsts_.back() + run.samples);
  }
}

std::span<const std::byte> Column::at(std::uint64_t index) const {
  MOTLEY_CHECK(index < size(), "sample {} of {}", index, size());
  const auto run = std::ranges::upper_bound(firsts_, index) - firsts_.begin() - 1;
  const auto which = static_cast<std::size_t>(run);
  const std::uint64_t place = index - firsts_[which];
  return runs_[which].bytes.subspan(place * runs_[which].distance_bytes, sample_bytes_);
}

Result<std::span<const std::byte>> ExampleStorage::map(const std::filesystem::path& path) {
  MOTLEY_ASSIGN(MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  owned_.emplace_back(std::move(file));
  return bytes;
}

void ExampleStorage::release_pages() const {
  for (const auto& owned : owned_) {
    if (const auto* file = std::get_if<MappedFile>(&owned)) file->release_pages();
  }
}

void ExampleStorage::append(ExampleStorage other) {
  std::ranges::move(other.owned_, std::back_inserter(owned_));
  std::ranges::copy(other.content_, std::back_inserter(content_));
}

std::span<const std::byte> ExampleStorage::keep(std::vector<std::byte> bytes) {
  const std::span<const std::byte> kept = bytes;
  owned_.emplace_back(std::move(bytes));
  return kept;
}

}  // namespace motley

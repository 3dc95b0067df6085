// Columns: the inputs of all samples or their targets, as they lie in files or in memory: tensors
// of one type and shape, one after the other. What a model makes of them is data/sample_maker.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "data/files/mapped_file.h"

namespace motley {

enum class ElementType { kUint8, kInt32, kInt64, kFloat32 };

[[nodiscard]] std::size_t element_bytes(ElementType type);
[[nodiscard]] std::string_view element_name(ElementType type);

// Element `element` of a sample's bytes. REQUIRES: a type of integers.
[[nodiscard]] std::int64_t integer_at(ElementType type,
                                      std::span<const std::byte> bytes,
                                      std::size_t element);

// "[3, 32, 32]"
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

// Points into storage that must outlive it. Immutable and safe to share between threads.
class Column {
 public:
  // Samples at equal distances in one file.
  struct Run {
    std::string file;                  // names it in errors
    std::span<const std::byte> bytes;  // from the first sample on
    std::uint64_t samples = 0;
    std::size_t distance_bytes = 0;  // from one sample to the next
  };

  // `shape` is one sample's. REQUIRES: the numbers of elements and bytes do not overflow; each
  // run's bytes hold its samples.
  Column(ElementType type, std::vector<std::int64_t> shape, std::vector<Run> runs);

  [[nodiscard]] ElementType type() const { return type_; }

  [[nodiscard]] std::span<const std::int64_t> shape() const { return shape_; }

  [[nodiscard]] std::size_t sample_bytes() const { return sample_bytes_; }

  [[nodiscard]] std::span<const Run> runs() const { return runs_; }

  [[nodiscard]] std::uint64_t size() const { return firsts_.back(); }  // samples

  // REQUIRES: index < size().
  [[nodiscard]] std::span<const std::byte> at(std::uint64_t index) const;

 private:
  ElementType type_;
  std::vector<std::int64_t> shape_;
  std::size_t sample_bytes_;
  std::vector<Run> runs_;
  std::vector<std::uint64_t> firsts_;  // [run]: its first sample; at the end, how many there are
};

// REQUIRES: both columns have as many samples.
struct Examples {
  Column inputs;
  Column targets;
};

// Owns the bytes that columns point into. They stay where they are when it is moved.
class ExampleStorage {
 public:
  // The bytes of the file. What MappedFile::open returns.
  [[nodiscard]] Result<std::span<const std::byte>> map(const std::filesystem::path& path);

  std::span<const std::byte> keep(std::vector<std::byte> bytes);

  // As MappedFile::release_pages, of all files.
  void release_pages() const;

  // Says that these bytes of it, which come next in the order of the format, tell this data from
  // other data.
  void add_content(std::span<const std::byte> bytes) { content_.push_back(bytes); }

  [[nodiscard]] std::span<const std::span<const std::byte>> content() const { return content_; }

 private:
  std::vector<std::variant<MappedFile, std::vector<std::byte>>> owned_;
  std::vector<std::span<const std::byte>> content_;
};

// All that data.path holds, opened.
struct ExampleFiles {
  ExampleStorage storage;
  Examples train;
  std::optional<Examples> held_out;  // of the types and shapes of `train`
};

}  // namespace motley

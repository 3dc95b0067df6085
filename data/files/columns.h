// Columns: one input or the targets of all samples, as stored in files or in memory: consecutive
// tensors of one type and shape. data/sample_maker.h converts them for the model.
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

enum class ElementType { kBool, kUint8, kInt8, kInt16, kInt32, kInt64, kFloat32 };

[[nodiscard]] std::size_t element_bytes(ElementType type);
[[nodiscard]] std::string_view element_name(ElementType type);

// Element number `element` of a sample's bytes; a truth value is its byte. REQUIRES: no float type.
[[nodiscard]] std::int64_t integer_at(ElementType type,
                                      std::span<const std::byte> bytes,
                                      std::size_t element);

// "[3, 32, 32]"
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

// Refers to storage that must outlive it. Immutable and safe to share between threads.
class Column {
 public:
  // Equidistant samples in one file.
  struct Run {
    std::string file;                  // name for errors
    std::span<const std::byte> bytes;  // from the first sample on
    std::uint64_t samples = 0;
    std::size_t distance_bytes = 0;  // from one sample to the next
  };

  // `shape` is that of one sample. REQUIRES: the numbers of elements and bytes do not overflow;
  // each run's bytes contain its samples.
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
  std::vector<std::uint64_t> firsts_;  // [run]: its first sample; at the end, their number
};

// REQUIRES: all columns have the same number of samples.
struct Examples {
  std::vector<Column> inputs;  // at least one, in the order of the model's
  Column targets;

  [[nodiscard]] std::uint64_t size() const { return targets.size(); }
};

// Owns the bytes that columns refer to. Their addresses are stable when it is moved.
class ExampleStorage {
 public:
  // The bytes of the file. Errors as MappedFile::open.
  [[nodiscard]] Result<std::span<const std::byte>> map(const std::filesystem::path& path);

  std::span<const std::byte> keep(std::vector<std::byte> bytes);

  // Takes over the bytes of `other`, and adds its content after this one's. Columns that refer to
  // either stay valid.
  void append(ExampleStorage other);

  // As MappedFile::release_pages, for all files.
  void release_pages() const;

  // Adds bytes to the content that identifies this data, in the order of the format.
  void add_content(std::span<const std::byte> bytes) { content_.push_back(bytes); }

  [[nodiscard]] std::span<const std::span<const std::byte>> content() const { return content_; }

 private:
  std::vector<std::variant<MappedFile, std::vector<std::byte>>> owned_;
  std::vector<std::span<const std::byte>> content_;
};

// All data of data.path, opened.
struct ExampleFiles {
  ExampleStorage storage;
  Examples train;
  std::optional<Examples> held_out;  // same types and shapes as `train`
  // Names of the targets 0, 1, …; empty if the files have none.
  std::vector<std::string> class_names = {};
  std::vector<std::string> notes = {};  // warnings about the files, one line each
};

}  // namespace motley

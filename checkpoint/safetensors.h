// The safetensors format: written for Hugging Face's readers, read as untrusted bytes. Limits and
// checks: docs/formats/checkpoint.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/input_file.h"

namespace motley {

// A tensor of a file, without its values.
struct TensorOutline {
  std::string name;
  std::string dtype;  // F32, F16, BF16, …
  std::vector<std::int64_t> shape;
};

// A float tensor to write; borrows its values.
struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

[[nodiscard]] std::vector<TensorOutline> outlines_of(const std::vector<TensorView>& tensors);

struct WrittenFile {
  std::string name;  // without folder
  std::uint64_t bytes = 0;
  std::string hash;                                  // hash128_hex of the whole file
  std::map<std::string, std::string> tensor_hashes;  // hash128_hex of each tensor's bytes
  // The machine in whose run folder it was written; empty if all files of a checkpoint are in one.
  std::string machine = {};
};

// Writes fp32 tensors in the given order, synced to the disk. `metadata` becomes __metadata__.
// kCorrupt if the disk is full or the path cannot be written; a partial file may remain. `work`
// counts the bytes as they reach the disk; nullptr: not counted. REQUIRES: names are distinct
// printable ASCII; each tensor has as many values as its shape.
[[nodiscard]] Result<WrittenFile> write_safetensors(
    const std::filesystem::path& path,
    const std::vector<TensorView>& tensors,
    const std::map<std::string, std::string>& metadata,
    ProgressCounter* work = nullptr);

// Writes a file whose tensors are known before their values, in pieces of any size: memory does not
// grow with them. One owner thread. After an error, or if this object is destroyed before close(),
// the file is incomplete; removing it is the caller's responsibility.
class SafetensorsWriter {
 public:
  // kCorrupt as write_safetensors. REQUIRES: names are distinct printable ASCII; the format has the
  // dtypes.
  [[nodiscard]] static Result<SafetensorsWriter> create(
      const std::filesystem::path& path,
      const std::vector<TensorOutline>& tensors,
      const std::map<std::string, std::string>& metadata,
      ProgressCounter* work = nullptr);
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
  ~SafetensorsWriter();

  // The next bytes of values: tensor by tensor, each in C order and little-endian.
  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes);
  // Syncs the file. REQUIRES: exactly the bytes of all tensors were appended.
  [[nodiscard]] Result<WrittenFile> close();

 private:
  struct Impl;
  explicit SafetensorsWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The beginning of a file: the header's length and the header. kCorrupt if they exceed the file or
// the limit; the header is not parsed.
[[nodiscard]] Result<std::string> read_safetensors_head(const InputFile& file);

// An opened file. open() checks the whole header (sizes, overlaps, holes, duplicate names, dtypes).
// Reading copies, and counts the bytes in `work` if there is one. Safe to share between threads.
class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;  // F32, F16, BF16; others of the format as bytes only
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0;  // in the data section
    std::uint64_t end = 0;
  };

  [[nodiscard]] static Result<SafetensorsFile> open(const std::filesystem::path& path,
                                                    ProgressCounter* work = nullptr);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  [[nodiscard]] const std::map<std::string, Entry>& entries() const;
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const;
  // Copies a tensor as fp32 (F16 and BF16 are widened exactly). kCorrupt if it is absent, has
  // another shape or dtype, or the file ends early. REQUIRES: values.size() is the product of
  // `shape`.
  [[nodiscard]] Result<void> read(const std::string& name,
                                  const std::vector<std::int64_t>& shape,
                                  std::span<float> values) const;
  // Reads values from number `first` on until `values` is full. REQUIRES: the tensor has that many.
  [[nodiscard]] Result<void> read_part(const std::string& name,
                                       std::uint64_t first,
                                       std::span<float> values) const;
  // The bytes of a whole tensor of exactly this dtype. REQUIRES: bytes.size() matches dtype and
  // shape.
  [[nodiscard]] Result<void> read_bytes(const std::string& name,
                                        const std::string& dtype,
                                        const std::vector<std::int64_t>& shape,
                                        std::span<std::byte> bytes) const;
  // Bytes of a tensor of any dtype from number `first` on, as many as fit. REQUIRES:
  // the tensor has them.
  [[nodiscard]] Result<void> read_bytes_part(const std::string& name,
                                             std::uint64_t first,
                                             std::span<std::byte> bytes) const;

 private:
  struct Impl;

  [[nodiscard]] Error unusable(const std::string& name,
                               std::string cause,
                               std::string remedy) const;
  // The tensor of this name and shape.
  [[nodiscard]] Result<const Entry*> find(const std::string& name,
                                          const std::vector<std::int64_t>& shape) const;

  [[nodiscard]] Result<void> read_values(const std::string& name,
                                         const Entry& entry,
                                         std::uint64_t first,
                                         std::span<float> values) const;

  explicit SafetensorsFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley

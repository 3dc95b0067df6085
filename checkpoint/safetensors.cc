#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/system/files.h"
#include "checkpoint/input_file.h"
#include "checkpoint/safetensors_header.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

// IEEE 754 half to single, which is exact; NaN payloads keep their bits.
float widen_fp16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  }
  const float magnitude = static_cast<float>(fraction) * 0x1.0p-24F;  // zero or subnormal
  return sign == 0 ? magnitude : -magnitude;
}

float widen_bf16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

Result<void> read_widened(const InputFile& file,
                          std::uint64_t offset,
                          float (*widen)(std::uint16_t),
                          std::span<float> values_N) {
  std::array<std::uint16_t, 1 << 14> block;
  while (!values_N.empty()) {
    const std::size_t count = std::min(block.size(), values_N.size());
    const auto raw = std::span(block).first(count);
    MOTLEY_TRY(file.read_at(offset, std::as_writable_bytes(raw)));
    std::transform(raw.begin(), raw.end(), values_N.begin(), widen);
    offset += raw.size_bytes();
    values_N = values_N.subspan(count);
  }
  return {};
}

// Whether the first byte after the length starts a JSON object, as a header does; true if the file
// ends before it.
Result<bool> begins_a_header(const InputFile& file) {
  if (file.bytes() <= kSafetensorsLengthBytes) return true;
  std::array<std::byte, 1> first;
  MOTLEY_TRY(file.read_at(kSafetensorsLengthBytes, first));
  return first.front() == std::byte{'{'};
}

}  // namespace

std::vector<TensorOutline> outlines_of(const std::vector<TensorView>& tensors) {
  std::vector<TensorOutline> outlines;
  outlines.reserve(tensors.size());
  for (const TensorView& tensor : tensors) outlines.push_back({tensor.name, "F32", tensor.shape});
  return outlines;
}

struct SafetensorsWriter::Impl {
  Impl(OutputFile opened, std::string name, std::vector<TensorOutline> outlines)
      : file(std::move(opened)), tensors(std::move(outlines)) {
    written.name = std::move(name);
  }

  OutputFile file;
  std::vector<TensorOutline> tensors;
  WrittenFile written;
  Hasher128 hasher;      // of the file
  std::size_t next = 0;  // the tensor of the next bytes
  std::uint64_t left_bytes = 0;
  std::unique_ptr<Hasher128> tensor_hasher;

  Result<void> write(std::span<const std::byte> bytes) {
    hasher.add(bytes);
    written.bytes += bytes.size();
    return file.write(bytes);
  }

  // Advances to the next tensor with values still missing, past empty ones.
  void settle() {
    while (next < tensors.size() && left_bytes == 0) {
      written.tensor_hashes[tensors[next].name] = tensor_hasher->hex();
      if (++next < tensors.size()) begin();
    }
  }

  void begin() {
    left_bytes = tensor_bytes(tensors[next]);
    tensor_hasher = std::make_unique<Hasher128>();
  }
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(
    const std::filesystem::path& path,
    const std::vector<TensorOutline>& tensors,
    const std::map<std::string, std::string>& metadata,
    ProgressCounter* work) {
  MOTLEY_ASSIGN(OutputFile file, OutputFile::create(path, work));
  auto impl = std::make_unique<Impl>(std::move(file), path.filename().string(), tensors);
  const std::string header = format_safetensors_header(tensors, metadata);
  const std::uint64_t header_bytes = header.size();
  MOTLEY_TRY(impl->write(std::as_bytes(std::span(&header_bytes, 1))));
  MOTLEY_TRY(impl->write(std::as_bytes(std::span(header))));
  if (!tensors.empty()) impl->begin();
  impl->settle();
  return SafetensorsWriter(std::move(impl));
}

Result<void> SafetensorsWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    MOTLEY_CHECK(impl_->next < impl_->tensors.size(), "{} bytes beyond the last tensor of {}",
                 bytes.size(), impl_->written.name);
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), impl_->left_bytes));
    impl_->tensor_hasher->add(part);
    MOTLEY_TRY(impl_->write(part));
    impl_->left_bytes -= part.size();
    bytes = bytes.subspan(part.size());
    impl_->settle();
  }
  return {};
}

Result<WrittenFile> SafetensorsWriter::close() {
  MOTLEY_CHECK(impl_->next == impl_->tensors.size(), "tensor '{}' lacks {} bytes",
               impl_->tensors[impl_->next].name, impl_->left_bytes);
  MOTLEY_TRY(impl_->file.close());
  impl_->written.hash = impl_->hasher.hex();
  return std::move(impl_->written);
}

Result<WrittenFile> write_safetensors(const std::filesystem::path& path,
                                      const std::vector<TensorView>& tensors,
                                      const std::map<std::string, std::string>& metadata,
                                      ProgressCounter* work) {
  for (const TensorView& tensor : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    MOTLEY_CHECK(count == static_cast<std::int64_t>(tensor.values.size()),
                 "tensor '{}' has {} values, shape [{}]", tensor.name, tensor.values.size(),
                 fmt::join(tensor.shape, ", "));
  }
  MOTLEY_ASSIGN(SafetensorsWriter writer,
                SafetensorsWriter::create(path, outlines_of(tensors), metadata, work));
  for (const TensorView& tensor : tensors) MOTLEY_TRY(writer.append(std::as_bytes(tensor.values)));
  return writer.close();
}

struct SafetensorsFile::Impl {
  InputFile file;
  std::uint64_t data_begin;  // of the data section, in the file
  SafetensorsHeader header;
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

Result<std::string> read_safetensors_head(const InputFile& file) {
  const std::string source = file.path().string();
  if (file.bytes() < kSafetensorsLengthBytes) {
    return damaged_safetensors(source, fmt::format("it has {} bytes", file.bytes()));
  }
  std::array<std::byte, kSafetensorsLengthBytes> first;
  MOTLEY_TRY(file.read_at(0, first));
  const auto header_bytes = safetensors_header_bytes(first, file.bytes(), source);
  if (!header_bytes.ok()) {
    // Without a header's length or first byte it is another kind of file, such as text.
    MOTLEY_ASSIGN(const bool is_damaged, begins_a_header(file));
    return is_damaged ? header_bytes.error() : no_safetensors(source);
  }
  std::string head(kSafetensorsLengthBytes + *header_bytes, '\0');
  const auto bytes = std::as_writable_bytes(std::span(head));
  std::ranges::copy(first, bytes.begin());
  MOTLEY_TRY(file.read_at(first.size(), bytes.subspan(first.size())));
  return head;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path,
                                              ProgressCounter* work) {
  MOTLEY_ASSIGN(InputFile file, InputFile::open(path, work));
  MOTLEY_ASSIGN(const std::string head, read_safetensors_head(file));
  const std::uint64_t data_begin = head.size();
  MOTLEY_ASSIGN(SafetensorsHeader header,
                parse_safetensors_header(std::string_view(head).substr(kSafetensorsLengthBytes),
                                         file.bytes() - data_begin, path.string()));
  return SafetensorsFile(
      std::make_unique<Impl>(Impl{std::move(file), data_begin, std::move(header)}));
}

const std::map<std::string, SafetensorsFile::Entry>& SafetensorsFile::entries() const {
  return impl_->header.entries;
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return impl_->header.metadata;
}

Error SafetensorsFile::unusable(const std::string& name,
                                std::string cause,
                                std::string remedy) const {
  return {ErrorCode::kCorrupt,
          fmt::format("cannot use tensor '{}', {}", name, impl_->file.path().string()),
          std::move(cause), std::move(remedy)};
}

Result<const SafetensorsFile::Entry*> SafetensorsFile::find(
    const std::string& name, const std::vector<std::int64_t>& shape) const {
  const auto found = entries().find(name);
  if (found == entries().end()) {
    return unusable(name, "the file does not contain it",
                    "check that the file is of the same model");
  }
  const Entry& entry = found->second;
  if (entry.shape != shape) {
    return unusable(name,
                    fmt::format("its shape is [{}]; [{}] is needed", fmt::join(entry.shape, ", "),
                                fmt::join(shape, ", ")),
                    "check that the model's sizes are those of the file");
  }
  return &entry;
}

Result<void> SafetensorsFile::read_values(const std::string& name,
                                          const Entry& entry,
                                          std::uint64_t first,
                                          std::span<float> values) const {
  const bool is_fp32 = entry.dtype == "F32";
  if (!is_fp32 && entry.dtype != "F16" && entry.dtype != "BF16") {
    return unusable(name, fmt::format("its dtype is {}", entry.dtype),
                    "convert it to F32, F16 or BF16 first");
  }
  const std::uint64_t value_bytes = is_fp32 ? 4 : 2;
  const std::uint64_t count = (entry.end - entry.begin) / value_bytes;
  MOTLEY_CHECK(first <= count && values.size() <= count - first,
               "tensor '{}' has {} values; {} from {} on were requested", name, count,
               values.size(), first);
  const std::uint64_t offset = impl_->data_begin + entry.begin + first * value_bytes;
  if (is_fp32) return impl_->file.read_at(offset, std::as_writable_bytes(values));
  return read_widened(impl_->file, offset, entry.dtype == "F16" ? widen_fp16 : widen_bf16, values);
}

Result<void> SafetensorsFile::read(const std::string& name,
                                   const std::vector<std::int64_t>& shape,
                                   std::span<float> values) const {
  MOTLEY_ASSIGN(const Entry* const entry, find(name, shape));
  const std::uint64_t value_bytes = std::max<std::uint64_t>(dtype_bytes(entry->dtype), 1);
  const std::uint64_t count = (entry->end - entry->begin) / value_bytes;
  MOTLEY_CHECK(values.size() == count, "tensor '{}': buffer of {} values, {} needed", name,
               values.size(), count);
  return read_values(name, *entry, 0, values);
}

Result<void> SafetensorsFile::read_part(const std::string& name,
                                        std::uint64_t first,
                                        std::span<float> values) const {
  const auto found = entries().find(name);
  MOTLEY_CHECK(found != entries().end(), "no tensor '{}'", name);
  return read_values(name, found->second, first, values);
}

Result<void> SafetensorsFile::read_bytes(const std::string& name,
                                         const std::string& dtype,
                                         const std::vector<std::int64_t>& shape,
                                         std::span<std::byte> bytes) const {
  MOTLEY_ASSIGN(const Entry* const entry, find(name, shape));
  if (entry->dtype != dtype) {
    return unusable(name, fmt::format("its dtype is {}; {} is needed", entry->dtype, dtype),
                    "check that the file is of the same model");
  }
  MOTLEY_CHECK(bytes.size() == entry->end - entry->begin,
               "tensor '{}': buffer of {} bytes, {} needed", name, bytes.size(),
               entry->end - entry->begin);
  return impl_->file.read_at(impl_->data_begin + entry->begin, bytes);
}

Result<void> SafetensorsFile::read_bytes_part(const std::string& name,
                                              std::uint64_t first,
                                              std::span<std::byte> bytes) const {
  const auto found = entries().find(name);
  MOTLEY_CHECK(found != entries().end(), "no tensor '{}'", name);
  const std::uint64_t count = found->second.end - found->second.begin;
  MOTLEY_CHECK(first <= count && bytes.size() <= count - first,
               "tensor '{}' has {} bytes; {} from {} on were requested", name, count, bytes.size(),
               first);
  return impl_->file.read_at(impl_->data_begin + found->second.begin + first, bytes);
}

}  // namespace motley

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

constexpr std::uint64_t kLengthBytes = 8;  // of the header's length, at the start of the file

// IEEE 754 half to single: every half is a single, so this is exact; NaN payloads keep their bits.
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

}  // namespace

Result<WrittenFile> write_safetensors(const std::filesystem::path& path,
                                      const std::vector<TensorView>& tensors,
                                      const std::map<std::string, std::string>& metadata,
                                      WorkCounter* work) {
  WrittenFile written{.name = path.filename().string()};
  Hasher128 hasher;
  MOTLEY_ASSIGN(OutputFile file, OutputFile::create(path, work));
  const auto append = [&](std::span<const std::byte> bytes) -> Result<void> {
    hasher.add(bytes);
    written.bytes += bytes.size();
    return file.write(bytes);
  };

  const std::string header = format_safetensors_header(tensors, metadata);
  const std::uint64_t header_bytes = header.size();
  MOTLEY_TRY(append(std::as_bytes(std::span(&header_bytes, 1))));
  MOTLEY_TRY(append(std::as_bytes(std::span(header))));
  for (const TensorView& tensor : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    MOTLEY_CHECK(count == static_cast<std::int64_t>(tensor.values.size()),
                 "tensor '{}' has {} values, shape [{}]", tensor.name, tensor.values.size(),
                 fmt::join(tensor.shape, ", "));
    const auto bytes = std::as_bytes(tensor.values);
    written.tensor_hashes[tensor.name] = hash128_hex(bytes);
    MOTLEY_TRY(append(bytes));
  }
  MOTLEY_TRY(file.close());
  written.hash = hasher.hex();
  return written;
}

struct SafetensorsFile::Impl {
  InputFile file;
  std::uint64_t data_begin;  // of the data section, within the file
  SafetensorsHeader header;
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path,
                                              WorkCounter* work) {
  MOTLEY_ASSIGN(InputFile file, InputFile::open(path, work));
  const auto damaged = [&](std::string cause) {
    return Error{ErrorCode::kCorrupt, fmt::format("damaged safetensors file, {}", path.string()),
                 std::move(cause), "copy or download the file again"};
  };
  if (file.bytes() < kLengthBytes) return damaged(fmt::format("it has {} bytes", file.bytes()));
  std::uint64_t header_bytes = 0;
  MOTLEY_TRY(file.read_at(0, std::as_writable_bytes(std::span(&header_bytes, 1))));
  if (header_bytes > kSafetensorsHeaderBytesMax || header_bytes > file.bytes() - kLengthBytes) {
    return damaged(fmt::format("its header of {} bytes does not fit the file's {} or the limit {}",
                               header_bytes, file.bytes(), kSafetensorsHeaderBytesMax));
  }
  std::string text(header_bytes, '\0');
  MOTLEY_TRY(file.read_at(kLengthBytes, std::as_writable_bytes(std::span(text))));
  const std::uint64_t data_begin = kLengthBytes + header_bytes;
  MOTLEY_ASSIGN(SafetensorsHeader header,
                parse_safetensors_header(text, file.bytes() - data_begin, path.string()));
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
    return unusable(name, "the file does not hold it", "check that the file is of the same model");
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

Result<void> SafetensorsFile::read(const std::string& name,
                                   const std::vector<std::int64_t>& shape,
                                   std::span<float> values) const {
  MOTLEY_ASSIGN(const Entry* const entry, find(name, shape));
  const bool is_fp32 = entry->dtype == "F32";
  if (!is_fp32 && entry->dtype != "F16" && entry->dtype != "BF16") {
    return unusable(name, fmt::format("its dtype is {}", entry->dtype),
                    "convert it to F32, F16 or BF16 first");
  }
  const std::uint64_t count = (entry->end - entry->begin) / (is_fp32 ? 4 : 2);
  MOTLEY_CHECK(values.size() == count, "tensor '{}': room for {} values, {} needed", name,
               values.size(), count);
  const std::uint64_t offset = impl_->data_begin + entry->begin;
  if (is_fp32) return impl_->file.read_at(offset, std::as_writable_bytes(values));
  return read_widened(impl_->file, offset, entry->dtype == "F16" ? widen_fp16 : widen_bf16, values);
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
               "tensor '{}': room for {} bytes, {} needed", name, bytes.size(),
               entry->end - entry->begin);
  return impl_->file.read_at(impl_->data_begin + entry->begin, bytes);
}

}  // namespace motley

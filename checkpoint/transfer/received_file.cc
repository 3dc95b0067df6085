#include "checkpoint/transfer/received_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "checkpoint/manifest.h"
#include "checkpoint/safetensors_header.h"

namespace motley {

ReceivedFile::ReceivedFile(const FileOrder& order,
                           std::filesystem::path path,
                           ProgressCounter* work)
    : order_(order), path_(std::move(path)), work_(work) {}

ReceivedFile::~ReceivedFile() {
  if (file_ && !is_kept_) ::unlink(path_.c_str());
}

Error ReceivedFile::differs(std::string cause) const {
  return damaged_checkpoint(order_.file.name, std::move(cause));
}

Result<void> ReceivedFile::begin(std::uint64_t file_bytes) {
  if (file_bytes != order_.file.bytes) {
    return differs(
        fmt::format("it has {} bytes; the manifest says {}", file_bytes, order_.file.bytes));
  }
  if (order_.tensors && file_bytes < kSafetensorsLengthBytes) {
    return damaged_safetensors(order_.file.name, fmt::format("it has {} bytes", file_bytes));
  }
  MOTLEY_ASSIGN(OutputFile file, OutputFile::create_new(path_, work_));
  file_.emplace(std::move(file));
  if (order_.tensors) return file_->set_bytes(file_bytes);
  ranges_ = {whole_file(order_)};
  return next_range();
}

Result<void> ReceivedFile::take(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (awaits_head()) {
      MOTLEY_ASSIGN(bytes, take_head(bytes));
      continue;
    }
    if (range_ == ranges_.size()) return differs("more bytes were received than it has");
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), left_bytes_));
    hasher_->add(part);
    MOTLEY_TRY(file_->write(part));
    left_bytes_ -= part.size();
    bytes = bytes.subspan(part.size());
    if (left_bytes_ > 0) continue;
    MOTLEY_TRY(check_range());
    ++range_;
    MOTLEY_TRY(next_range());
  }
  return {};
}

Result<std::span<const std::byte>> ReceivedFile::take_head(std::span<const std::byte> bytes) {
  const auto fill_to = [&](std::uint64_t head_bytes) {
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), head_bytes - head_.size()));
    head_.append(reinterpret_cast<const char*>(part.data()), part.size());
    bytes = bytes.subspan(part.size());
    return head_.size() == head_bytes;
  };
  if (!header_bytes_) {
    if (!fill_to(kSafetensorsLengthBytes)) return bytes;
    MOTLEY_ASSIGN(
        header_bytes_,
        safetensors_header_bytes(std::as_bytes(std::span(head_)).first<kSafetensorsLengthBytes>(),
                                 order_.file.bytes, order_.file.name));
  }
  if (!fill_to(kSafetensorsLengthBytes + *header_bytes_)) return bytes;
  MOTLEY_ASSIGN(ranges_, ordered_tensors(order_, head_, order_.file.name));
  MOTLEY_TRY(file_->write(std::as_bytes(std::span(head_))));
  has_head_ = true;
  MOTLEY_TRY(next_range());
  return bytes;
}

Result<void> ReceivedFile::next_range() {
  for (; range_ < ranges_.size(); ++range_) {
    MOTLEY_TRY(file_->go_to(ranges_[range_].offset));
    left_bytes_ = ranges_[range_].bytes;
    hasher_ = std::make_unique<Hasher128>();
    if (left_bytes_ > 0) return {};
    MOTLEY_TRY(check_range());
  }
  return {};
}

Result<void> ReceivedFile::check_range() const {
  const FileRange& range = ranges_[range_];
  if (hasher_->hex() == range.hash) return {};
  return differs(fmt::format(
      "the hash of {} is {}; the manifest says {}",
      range.tensor.empty() ? "all of it" : fmt::format("tensor '{}'", excerpt(range.tensor)),
      hasher_->hex(), range.hash));
}

Result<void> ReceivedFile::finish() {
  MOTLEY_TRY(close());
  is_kept_ = true;
  return {};
}

Result<void> ReceivedFile::finish_as(const std::filesystem::path& name) {
  MOTLEY_TRY(close());
  std::error_code code;
  std::filesystem::rename(path_, name, code);
  if (code) return file_error("rename", path_, code.value());
  is_kept_ = true;
  return sync_folder(name.parent_path());
}

Result<void> ReceivedFile::close() {
  if (awaits_head()) return differs("its header is incomplete");
  if (range_ < ranges_.size()) {
    return differs(fmt::format("{} of its bytes are missing", left_bytes_));
  }
  return file_->close();
}

}  // namespace motley

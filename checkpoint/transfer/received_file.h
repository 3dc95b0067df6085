// ReceivedFile: the file that a rank writes from another rank's parts. Takes the sender's untrusted
// bytes in pieces of any size. Their positions and number follow from the order and from the file's
// header, once that is validated. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/progress_counter.h"
#include "base/result.h"
#include "base/system/files.h"
#include "checkpoint/transfer/file_ranges.h"
#include "checkpoint/transfer/file_transfer.h"

namespace motley {

class ReceivedFile {
 public:
  // The order must outlive this.
  ReceivedFile(const FileOrder& order, std::filesystem::path path, ProgressCounter* work);
  // Removes the file if it was created and finish() has not succeeded.
  ~ReceivedFile();
  ReceivedFile(const ReceivedFile&) = delete;
  ReceivedFile& operator=(const ReceivedFile&) = delete;

  // Starts with the size that the sender reports. kCorrupt if it contradicts the order, or the file
  // cannot be created. Called once, first.
  [[nodiscard]] Result<void> begin(std::uint64_t file_bytes);

  // kCorrupt if the bytes exceed the order, are not a header of the ordered file, contradict the
  // manifest's hash, or cannot be written. REQUIRES: no earlier call failed.
  [[nodiscard]] Result<void> take(std::span<const std::byte> bytes);

  // All bytes have arrived: syncs the file. kCorrupt if some are missing or the disk fails.
  // REQUIRES: no earlier call failed.
  [[nodiscard]] Result<void> finish();
  // The same, and renames the file to `name`, replacing an existing one; the name is synced too.
  // kCorrupt if that fails. REQUIRES: `name` is in the file's folder.
  [[nodiscard]] Result<void> finish_as(const std::filesystem::path& name);

 private:
  // Checks that all bytes have arrived, and syncs them.
  [[nodiscard]] Result<void> close();
  // Takes the bytes of the header and returns the rest.
  [[nodiscard]] Result<std::span<const std::byte>> take_head(std::span<const std::byte> bytes);
  // Begins the next range with bytes, from `range_` on.
  [[nodiscard]] Result<void> next_range();
  [[nodiscard]] Result<void> check_range() const;

  [[nodiscard]] bool awaits_head() const { return order_.tensors && !has_head_; }

  [[nodiscard]] Error differs(std::string cause) const;

  const FileOrder& order_;
  const std::filesystem::path path_;
  ProgressCounter* const work_;

  std::optional<OutputFile> file_;
  bool is_kept_ = false;

  // The received part of the header with its length; only if tensors were ordered.
  std::string head_;
  std::optional<std::uint64_t> header_bytes_;
  bool has_head_ = false;

  std::vector<FileRange> ranges_;  // known after the header
  // Of the range of the next bytes.
  std::size_t range_ = 0;
  std::uint64_t left_bytes_ = 0;
  std::unique_ptr<Hasher128> hasher_;
};

}  // namespace motley

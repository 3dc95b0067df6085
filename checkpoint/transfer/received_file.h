// ReceivedFile: what a rank writes of a file that comes from another one. Takes the bytes that the
// sender gives, in pieces of any size, as the untrusted bytes that they are: where they go and how
// many there may be follows from the order and, once it is checked, from the file's header. One
// owner thread.
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
#include "base/result.h"
#include "base/system/files.h"
#include "base/work_counter.h"
#include "checkpoint/transfer/file_ranges.h"
#include "checkpoint/transfer/file_transfer.h"

namespace motley {

class ReceivedFile {
 public:
  // The order must outlive this.
  ReceivedFile(const FileOrder& order, std::filesystem::path path, WorkCounter* work);
  // Removes the file, if it was made and finish() has not succeeded.
  ~ReceivedFile();
  ReceivedFile(const ReceivedFile&) = delete;
  ReceivedFile& operator=(const ReceivedFile&) = delete;

  // The sender's file has so many bytes. kCorrupt when the order says otherwise, or the file cannot
  // be made here. Called once, first.
  [[nodiscard]] Result<void> begin(std::uint64_t file_bytes);

  // kCorrupt when they are more than was ordered, are no header of the ordered file, have another
  // hash than the manifest says, or cannot be written. REQUIRES: nothing failed before.
  [[nodiscard]] Result<void> take(std::span<const std::byte> bytes);

  // All has come: syncs it. kCorrupt when something is missing or the disk fails. REQUIRES: nothing
  // failed before.
  [[nodiscard]] Result<void> finish();
  // The same, and the file is called `name` then, in the place of what was: synced too. kCorrupt
  // also when that is impossible. REQUIRES: `name` is in the file's folder.
  [[nodiscard]] Result<void> finish_as(const std::filesystem::path& name);

 private:
  // All has come, and is on the disk.
  [[nodiscard]] Result<void> close();
  // Takes what belongs to the header and returns the rest.
  [[nodiscard]] Result<std::span<const std::byte>> take_head(std::span<const std::byte> bytes);
  // From `range_` on, begins the first range that has bytes.
  [[nodiscard]] Result<void> next_range();
  [[nodiscard]] Result<void> check_range() const;

  [[nodiscard]] bool awaits_head() const { return order_.tensors && !has_head_; }

  [[nodiscard]] Error differs(std::string cause) const;

  const FileOrder& order_;
  const std::filesystem::path path_;
  WorkCounter* const work_;

  std::optional<OutputFile> file_;
  bool is_kept_ = false;

  // The header with its length before it, as far as it has come; where tensors were ordered.
  std::string head_;
  std::optional<std::uint64_t> header_bytes_;
  bool has_head_ = false;

  std::vector<FileRange> ranges_;  // known once the header is
  // Of the range that the next bytes belong to.
  std::size_t range_ = 0;
  std::uint64_t left_bytes_ = 0;
  std::unique_ptr<Hasher128> hasher_;
};

}  // namespace motley

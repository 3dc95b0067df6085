// FileReceiver: a transfer of files to a joined machine. It asks for the contents that the cache
// lacks, piece by piece, continues a file that an earlier transfer began, compares each hash, and
// places the files under their paths on the head, below the session's folder. Nothing is written
// outside the two folders. Never waits for the network. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system/owned_fd.h"
#include "cluster/join/join_messages.h"
#include "models/package/sha256.h"

namespace motley {

// The place below `root` of a file with this path on the head; kCorrupt unless the path is absolute
// and normal, so that it cannot lead outside.
[[nodiscard]] Result<std::filesystem::path> placed_path(const std::filesystem::path& root,
                                                        const std::string& path);

class FileReceiver {
 public:
  // Both folders exist. `free_bytes` leaves this many bytes of the disk to others.
  FileReceiver(std::filesystem::path objects, std::filesystem::path files);

  // A part of the manifest. Errors are kPeer for a violation of the protocol, otherwise kCorrupt.
  [[nodiscard]] Result<void> add(const ManifestPart& part);
  // The bytes of the oldest piece that was asked for.
  [[nodiscard]] Result<void> take(std::string_view piece);
  // Continues: hashes, asks for pieces, goes to the next file. Returns the pieces to ask for. kData
  // if a file has another content than was offered.
  [[nodiscard]] Result<std::vector<WantedPiece>> advance();

  // Whether advance() has work without another message.
  [[nodiscard]] bool is_busy() const { return is_complete_ && !is_done_ && asked_.empty(); }

  // Whether all files are in their places.
  [[nodiscard]] bool is_done() const { return is_done_; }

  [[nodiscard]] std::uint64_t received_bytes() const { return received_bytes_; }

 private:
  [[nodiscard]] Result<void> check_space() const;
  [[nodiscard]] Result<void> begin_file();
  [[nodiscard]] Result<void> hash_some();
  [[nodiscard]] Result<void> finish_file();
  [[nodiscard]] Result<void> place_all() const;
  [[nodiscard]] Result<void> remove_others(const std::set<std::filesystem::path>& places) const;
  [[nodiscard]] std::filesystem::path object_of(const OfferedFile& file) const;
  [[nodiscard]] std::filesystem::path part_of(const OfferedFile& file) const;

  std::filesystem::path objects_;
  std::filesystem::path files_;
  std::vector<OfferedFile> manifest_;
  bool is_complete_ = false;  // the manifest
  bool is_done_ = false;
  std::size_t current_ = 0;  // index in manifest_
  OwnedFd part_;             // of the current file
  std::optional<Sha256> hash_;
  std::uint64_t hashed_ = 0;   // bytes of the current file
  std::uint64_t present_ = 0;  // on the disk
  std::uint64_t next_ = 0;     // offset of the next piece to ask for
  std::vector<WantedPiece> asked_;
  std::uint64_t received_bytes_ = 0;
};

}  // namespace motley

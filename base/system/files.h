// Files: whole reads with a size limit, and writes that are either complete or absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/system/owned_fd.h"
#include "base/work_counter.h"

namespace motley {

// Opens a file, by the flags of open(2); without O_NOFOLLOW also through a link. kCorrupt when that
// is impossible, and where a pipe or a socket has the name: somebody would have to be waited for.
[[nodiscard]] Result<OwnedFd> open_file(const std::filesystem::path& path, int flags);

// The same of a file that this program keeps in a folder where others can write too. kCorrupt where
// anything else has the name, a link too: what is written would go wherever it leads.
[[nodiscard]] Result<OwnedFd> open_regular_file(const std::filesystem::path& path, int flags);

// The whole file as text. kCorrupt when it cannot be read, is a pipe or is larger than
// max_bytes.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::uint64_t max_bytes = 64ULL << 20);

// The same of what the user names, which may be a pipe, as of `<(command)`: it is read to its end.
[[nodiscard]] Result<std::string> read_input(const std::filesystem::path& path,
                                             std::uint64_t max_bytes);

// Replaces `path` by `text`: written beside it, synced, renamed, folder synced. After a crash at
// any point the old file or the new one is there, never a mixture. kCorrupt when it cannot be
// written (the cause says why, such as a full disk); the old file then still stands.
[[nodiscard]] Result<void> write_file_atomic(const std::filesystem::path& path,
                                             std::string_view text);

// The same by way of a file of that name, which must be in the same folder.
[[nodiscard]] Result<void> replace_file(const std::filesystem::path& path,
                                        const std::filesystem::path& temporary,
                                        std::string_view text);

// Whether write_file_atomic would find the place to write it: a folder that takes files, and
// nothing of the name but a file. Leaves nothing. For finding a mistake before the work whose
// result is to be written; what happens to the disk meanwhile it cannot know.
[[nodiscard]] Result<void> check_can_write(const std::filesystem::path& path);

// Whether there is anything of that name. kCorrupt where this process may not look.
[[nodiscard]] Result<bool> path_exists(const std::filesystem::path& path);

// Free bytes on the disk that holds the folder, for who is not root; nothing where the file system
// does not tell.
[[nodiscard]] std::optional<std::uint64_t> free_disk_bytes(const std::filesystem::path& folder);

// Makes the folder and its parents. kCorrupt when that is impossible.
[[nodiscard]] Result<void> make_folders(const std::filesystem::path& path);

// The same, and the names of those that it makes are on the disk when it returns: what is synced
// in a folder is lost all the same with the folder's own name, or that of one above it.
[[nodiscard]] Result<void> make_lasting_folders(const std::filesystem::path& path);

// Forces the names in a folder to the disk.
[[nodiscard]] Result<void> sync_folder(const std::filesystem::path& path);

// The error for a failed system call on `path`: "cannot <verb> <path>" with errno's text and, where
// a person can do something about it, what that is.
[[nodiscard]] Error file_error(const std::string& verb,
                               const std::filesystem::path& path,
                               int errno_value);

// A file opened for writing, whose bytes reach the disk before close() returns, and in pieces on
// the way: one long wait at the end could not be told from a disk that is gone. On a slow disk the
// pieces become small, so that one of them takes about a second.
// One owner thread. Removing a half-written file is the caller's choice.
class OutputFile {
 public:
  [[nodiscard]] static Result<OutputFile> create(const std::filesystem::path& path);
  // The same, and counts what the system has taken and what has reached the disk.
  [[nodiscard]] static Result<OutputFile> create(const std::filesystem::path& path,
                                                 WorkCounter* work);
  // Only where nothing of that name is.
  [[nodiscard]] static Result<OutputFile> create_new(const std::filesystem::path& path,
                                                     WorkCounter* work);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) = delete;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes);
  // The file has so many bytes from now on; what was not written of them reads as zeros, and takes
  // no room where the file system can leave it out.
  [[nodiscard]] Result<void> set_bytes(std::uint64_t bytes);
  // The next write begins there.
  [[nodiscard]] Result<void> go_to(std::uint64_t offset);
  [[nodiscard]] Result<void> close();  // fsync, then close

 private:
  OutputFile(int fd, std::filesystem::path path, WorkCounter* work);

  [[nodiscard]] static Result<OutputFile> open(const std::filesystem::path& path,
                                               int flags,
                                               WorkCounter* work);
  [[nodiscard]] Result<void> sync();  // what was written so far

  int fd_;
  std::filesystem::path path_;
  WorkCounter* work_;  // nullptr: nobody counts
  std::size_t unsynced_bytes_ = 0;
  std::size_t piece_bytes_ = std::size_t{1} << 20;  // between two syncs
};

}  // namespace motley

// Files: whole reads with a size limit, and writes that are either complete or absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/progress_counter.h"
#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

// Opens a file with the flags of open(2); follows symbolic links unless O_NOFOLLOW is given.
// kCorrupt if that fails, or if the path is a pipe or a socket, whose other end could block the
// caller.
[[nodiscard]] Result<OwnedFd> open_file(const std::filesystem::path& path, int flags);

// The same for a file of this program in a folder where other users may write. kCorrupt if the path
// is anything but a regular file: a symbolic link would redirect the write.
[[nodiscard]] Result<OwnedFd> open_regular_file(const std::filesystem::path& path, int flags);

// The whole file as text. kCorrupt if it cannot be read, is a pipe or is larger than max_bytes.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::uint64_t max_bytes = 64ULL << 20);

// The same for a path from the user, which may be a pipe (`<(command)`): it is read to its end.
[[nodiscard]] Result<std::string> read_input(const std::filesystem::path& path,
                                             std::uint64_t max_bytes);

// Replaces `path` by `text`: written to a temporary file, synced, renamed, folder synced. After a
// crash at any point either the old or the new file exists, never a mixture. kCorrupt if it cannot
// be written (with the cause, such as a full disk); the old file is then unchanged.
[[nodiscard]] Result<void> write_file_atomic(const std::filesystem::path& path,
                                             std::string_view text);

// The same with the given temporary file, which must be in the same folder.
[[nodiscard]] Result<void> replace_file(const std::filesystem::path& path,
                                        const std::filesystem::path& temporary,
                                        std::string_view text);

// Whether write_file_atomic could write the file now: the folder is writable, and the path is free
// or a regular file. Leaves no file behind. Finds a mistake before the work whose result is to be
// written; it cannot foresee later changes of the disk.
[[nodiscard]] Result<void> check_can_write(const std::filesystem::path& path);

// Whether the path exists. kCorrupt if this process has no permission to look.
[[nodiscard]] Result<bool> path_exists(const std::filesystem::path& path);

// Free bytes, for unprivileged users, on the disk of the folder; nullopt if the file system does
// not report them.
[[nodiscard]] std::optional<std::uint64_t> free_disk_bytes(const std::filesystem::path& folder);

// Whether the folder is on a disk or in memory of this computer, which no other one writes to
// directly. False for network file systems, for those of a virtual machine's host, and for unknown
// ones.
[[nodiscard]] bool is_on_own_disk(const std::filesystem::path& folder);

// Creates the folder and its parents. kCorrupt if that fails.
[[nodiscard]] Result<void> make_folders(const std::filesystem::path& path);

// The same, and syncs the parents of each folder that it creates. Without that, a crash could lose
// a new folder's name, and with it all synced files inside.
[[nodiscard]] Result<void> make_durable_folders(const std::filesystem::path& path);

// Syncs the names in a folder to the disk.
[[nodiscard]] Result<void> sync_folder(const std::filesystem::path& path);

// The error for a failed system call on `path`: "cannot <verb> <path>" with errno's text and, for
// errors that a user can fix, a hint.
[[nodiscard]] Error file_error(const std::string& verb,
                               const std::filesystem::path& path,
                               int errno_value);

// A file opened for writing. Its bytes are on the disk when close() returns. They are synced in
// pieces on the way, because one long sync at the end would look like a stalled disk. On a slow
// disk the pieces shrink until one takes about a second. One owner thread. Removing a half-written
// file is the caller's responsibility.
class OutputFile {
 public:
  [[nodiscard]] static Result<OutputFile> create(const std::filesystem::path& path);
  // The same; `work` counts the bytes written and the syncs.
  [[nodiscard]] static Result<OutputFile> create(const std::filesystem::path& path,
                                                 ProgressCounter* work);
  // Fails if the path exists.
  [[nodiscard]] static Result<OutputFile> create_new(const std::filesystem::path& path,
                                                     ProgressCounter* work);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) = delete;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes);
  // Sets the file's size. Unwritten bytes read as zeros and use no disk space if the file system
  // supports sparse files.
  [[nodiscard]] Result<void> set_bytes(std::uint64_t bytes);
  // The next write begins at `offset`.
  [[nodiscard]] Result<void> go_to(std::uint64_t offset);
  [[nodiscard]] Result<void> close();  // fsync, then close

 private:
  OutputFile(int fd, std::filesystem::path path, ProgressCounter* work);

  [[nodiscard]] static Result<OutputFile> open(const std::filesystem::path& path,
                                               int flags,
                                               ProgressCounter* work);
  [[nodiscard]] Result<void> sync();  // syncs the bytes written so far

  int fd_;
  std::filesystem::path path_;
  ProgressCounter* work_;  // nullptr: not counted
  std::size_t unsynced_bytes_ = 0;
  std::size_t piece_bytes_ = std::size_t{1} << 20;  // between two syncs
};

}  // namespace motley

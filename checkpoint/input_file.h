// A regular file opened for reading. Names in a checkpoint are untrusted, so a symbolic link is not
// followed, and a pipe or device is refused before it could block. Safe to share between threads:
// each read has its own position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/progress_counter.h"
#include "base/result.h"

namespace motley {

class InputFile {
 public:
  // kCorrupt if it is absent, a link, or not a regular file. `work` counts the bytes read; nullptr:
  // not counted.
  [[nodiscard]] static Result<InputFile> open(const std::filesystem::path& path,
                                              ProgressCounter* work = nullptr);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) = delete;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // when it was opened

  // Fills `into` from `offset`. kCorrupt if the file ends before.
  [[nodiscard]] Result<void> read_at(std::uint64_t offset, std::span<std::byte> into) const;

  // The whole file. kCorrupt if it is larger than max_bytes.
  [[nodiscard]] Result<std::string> read_all(std::uint64_t max_bytes) const;

 private:
  InputFile(int fd, std::filesystem::path path, std::uint64_t bytes, ProgressCounter* work);

  int fd_;
  std::filesystem::path path_;
  std::uint64_t bytes_;
  ProgressCounter* work_;
};

}  // namespace motley

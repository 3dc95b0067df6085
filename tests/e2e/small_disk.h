// Full disks, and folders that root cannot write either. Mounting needs root.
#pragma once

#include <sys/mount.h>

#include <filesystem>
#include <string>
#include <utility>

namespace motley::test {

class SmallDisk {
 public:
  // Mounted on `folder`, which is created; `size` in tmpfs's format, "700k".
  SmallDisk(std::filesystem::path folder, const std::string& size) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    mounted_ = ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }

  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }

  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  std::filesystem::path folder_;
  bool mounted_ = false;
};

// Makes the folder read-only until end() or destruction.
class ReadOnlyFolder {
 public:
  explicit ReadOnlyFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
    const char* const path = folder_.c_str();
    mounted_ = ::mount(path, path, nullptr, MS_BIND, nullptr) == 0;
    guarded_ =
        mounted_ && ::mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
  }

  ~ReadOnlyFolder() { end(); }

  ReadOnlyFolder(const ReadOnlyFolder&) = delete;
  ReadOnlyFolder& operator=(const ReadOnlyFolder&) = delete;

  [[nodiscard]] bool guarded() const { return guarded_; }

  void end() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
    mounted_ = false;
  }

 private:
  std::filesystem::path folder_;
  bool mounted_ = false;
  bool guarded_ = false;
};

}  // namespace motley::test

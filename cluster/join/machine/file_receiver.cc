#include "cluster/join/machine/file_receiver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <span>
#include <utility>

#include "base/system/files.h"
#include "cluster/join/join_frame.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAskedMax = 16;                     // pieces under way
constexpr std::size_t kHashBytes = std::size_t{8} << 20;  // in one call of advance()
constexpr std::size_t kManifestMax = 1'000'000;           // files
constexpr std::uint64_t kFreeForOthersBytes = std::uint64_t{256} << 20;

std::uint64_t size_of(const fs::path& path) {
  std::error_code failed;
  const auto bytes = fs::file_size(path, failed);
  return failed ? 0 : bytes;
}

Error transfer_violation(const std::string& cause) {
  return {ErrorCode::kPeer, "the head violates the protocol", cause,
          "use the same version of Motley on every machine"};
}

std::string gib_text(std::uint64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

Result<void> write_all(const OwnedFd& fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace

Result<fs::path> placed_path(const fs::path& root, const std::string& path) {
  const fs::path given(path);
  const bool is_plain = given.is_absolute() && given.lexically_normal() == given &&
                        given.has_filename() && path.find('\0') == std::string::npos &&
                        path.size() <= kJoinPathBytesMax && !path.starts_with("//") &&
                        std::ranges::none_of(given, [](const fs::path& p) { return p == ".."; });
  if (is_plain) return root / given.relative_path();
  return Error{ErrorCode::kCorrupt,
               fmt::format("the head sent an unusable path: {}", excerpt(path)),
               "it is not absolute and normal", ""};
}

FileReceiver::FileReceiver(fs::path objects, fs::path files)
    : objects_(std::move(objects)), files_(std::move(files)) {}

fs::path FileReceiver::object_of(const OfferedFile& file) const {
  return objects_ / file.sha256;
}

fs::path FileReceiver::part_of(const OfferedFile& file) const {
  return objects_ / (file.sha256 + ".part");
}

Result<void> FileReceiver::add(const ManifestPart& part) {
  if (is_complete_ || manifest_.size() + part.files.size() > kManifestMax) {
    return transfer_violation("a manifest that is too long");
  }
  for (const OfferedFile& file : part.files) MOTLEY_TRY(placed_path(files_, file.path));
  manifest_.insert(manifest_.end(), part.files.begin(), part.files.end());
  if (!part.is_last) return {};
  is_complete_ = true;
  return check_space();
}

Result<void> FileReceiver::check_space() const {
  std::set<std::string> counted;
  std::uint64_t missing_bytes = 0;
  for (const OfferedFile& file : manifest_) {
    if (fs::exists(object_of(file)) || !counted.insert(file.sha256).second) continue;
    missing_bytes += file.bytes - std::min(file.bytes, size_of(part_of(file)));
  }
  const auto free_bytes = free_disk_bytes(objects_);
  if (missing_bytes == 0 || !free_bytes || *free_bytes >= missing_bytes + kFreeForOthersBytes) {
    return {};
  }
  return Error{ErrorCode::kCorrupt,
               fmt::format("the files need {} in {}, and {} stay free for others; {} are free",
                           gib_text(missing_bytes), objects_.string(),
                           gib_text(kFreeForOthersBytes), gib_text(*free_bytes)),
               "", ""};
}

Result<std::vector<WantedPiece>> FileReceiver::advance() {
  std::vector<WantedPiece> wanted;
  while (is_complete_ && !is_done_) {
    if (current_ == manifest_.size()) {
      MOTLEY_TRY(place_all());
      is_done_ = true;
      break;
    }
    const OfferedFile& file = manifest_[current_];
    if (!part_.open()) {
      if (size_of(object_of(file)) == file.bytes && fs::exists(object_of(file))) {
        ++current_;
        continue;
      }
      MOTLEY_TRY(begin_file());
    }
    if (hashed_ < present_) {
      MOTLEY_TRY(hash_some());
      if (hashed_ < present_) break;
    }
    if (present_ == file.bytes) {
      MOTLEY_TRY(finish_file());
      continue;
    }
    while (asked_.size() < kAskedMax && next_ < file.bytes) {
      const auto bytes = std::min<std::uint64_t>(kJoinBytesMax, file.bytes - next_);
      asked_.push_back({current_, next_, bytes});
      wanted.push_back(asked_.back());
      next_ += bytes;
    }
    break;
  }
  return wanted;
}

Result<void> FileReceiver::begin_file() {
  const OfferedFile& file = manifest_[current_];
  const fs::path path = part_of(file);
  // A longer file was left by something else.
  if (size_of(path) > file.bytes) fs::remove(path);
  part_ = OwnedFd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                         S_IRUSR | S_IWUSR));
  if (!part_.open()) return file_error("write", path, errno);
  MOTLEY_ASSIGN(Sha256 hash, Sha256::make());
  hash_.reset();
  hash_.emplace(std::move(hash));
  hashed_ = 0;
  present_ = next_ = size_of(path);
  return {};
}

// Of what an earlier transfer has left.
Result<void> FileReceiver::hash_some() {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kHashBytes, present_ - hashed_));
  const ssize_t count =
      ::pread(part_.get(), buffer.data(), buffer.size(), static_cast<off_t>(hashed_));
  if (count <= 0) return file_error("read", part_of(manifest_[current_]), count < 0 ? errno : EIO);
  hash_->add(std::span(buffer).first(static_cast<std::size_t>(count)));
  hashed_ += static_cast<std::uint64_t>(count);
  return {};
}

Result<void> FileReceiver::take(std::string_view piece) {
  if (asked_.empty()) return transfer_violation("a piece of a file that was not asked for");
  const WantedPiece wanted = asked_.front();
  asked_.erase(asked_.begin());
  if (piece.size() != wanted.bytes) return transfer_violation("a piece of a file of another size");
  MOTLEY_TRY(write_all(part_, piece, part_of(manifest_[current_])));
  hash_->add(std::as_bytes(std::span(piece)));
  present_ += piece.size();
  hashed_ = present_;
  received_bytes_ += piece.size();
  return {};
}

Result<void> FileReceiver::finish_file() {
  const OfferedFile& file = manifest_[current_];
  const fs::path part = part_of(file);
  const std::string found = hash_->hex();
  hash_.reset();
  if (::fdatasync(part_.get()) != 0) return file_error("write", part, errno);
  part_.reset();
  std::error_code failed;
  if (found != file.sha256) {
    fs::remove(part, failed);
    return Error{ErrorCode::kData, fmt::format("{} arrived with another content", file.path),
                 "it has changed on the head, or its transfer was damaged", "start again"};
  }
  ::chmod(part.c_str(), S_IRUSR);
  fs::rename(part, object_of(file), failed);
  if (failed) return file_error("rename", part, failed.value());
  ++current_;
  return {};
}

// Hard links rather than symbolic ones, which readers of packages and of folders refuse or skip.
// A file of an earlier transfer that is not offered any more would be read as data.
Result<void> FileReceiver::place_all() const {
  std::set<fs::path> places;
  for (const OfferedFile& file : manifest_) {
    MOTLEY_ASSIGN(const fs::path place, placed_path(files_, file.path));
    places.insert(place);
    MOTLEY_TRY(make_folders(place.parent_path()));
    std::error_code failed;
    if (fs::symlink_status(place, failed).type() == fs::file_type::regular &&
        fs::equivalent(place, object_of(file), failed)) {
      continue;
    }
    fs::remove_all(place, failed);
    fs::create_hard_link(object_of(file), place, failed);
    // A file has a limited number of links, and some file systems have none.
    if (failed) fs::copy_file(object_of(file), place, failed);
    if (failed) return file_error("make", place, failed.value());
  }
  return remove_others(places);
}

Result<void> FileReceiver::remove_others(const std::set<fs::path>& places) const {
  std::vector<fs::path> others;
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(files_, failed)) {
    std::error_code ignored;
    const bool is_folder = entry.symlink_status(ignored).type() == fs::file_type::directory;
    if (!is_folder && !places.contains(entry.path())) others.push_back(entry.path());
  }
  if (failed) return file_error("read", files_, failed.value());
  for (const fs::path& other : others) {
    fs::remove(other, failed);
    if (failed) return file_error("remove", other, failed.value());
  }
  return {};
}

}  // namespace motley

#include "cluster/run/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include "base/system/files.h"

namespace motley {
namespace {

// The length in bytes of the whole lines before the first one of a step after `last_step`. A line
// that cannot be read says nothing of those around it, so it stays.
std::int64_t bytes_through(const std::filesystem::path& path, std::int64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  std::int64_t bytes = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const Result<Json> metrics = parse_json(line, path.string());
    const Result<std::int64_t> step =
        metrics ? json_get<std::int64_t>(*metrics, "step", path.string()) : metrics.error();
    if (step && *step > last_step) break;
    bytes += static_cast<std::int64_t>(line.size()) + 1;
  }
  return bytes;
}

}  // namespace

Result<MetricsFile> MetricsFile::open(const std::filesystem::path& path,
                                      std::int64_t resumed_step) {
  OwnedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.open()) return file_error("open", path, errno);
  const std::int64_t whole_bytes = bytes_through(path, resumed_step);
  if (::ftruncate(fd.get(), whole_bytes) != 0) return file_error("shorten", path, errno);
  return MetricsFile(std::move(fd), path, whole_bytes);
}

Result<void> MetricsFile::append(const Json& metrics) {
  constexpr std::size_t kWaitingBytesMax = 64 << 20;
  const std::string line = metrics.dump() + "\n";
  if (waiting_.size() + line.size() <= kWaitingBytesMax) {
    waiting_ += line;
  } else {
    ++left_out_;
  }
  return write_waiting();
}

Result<void> MetricsFile::write_waiting() {
  const ssize_t written = ::write(fd_.get(), waiting_.data(), waiting_.size());
  if (written == static_cast<ssize_t>(waiting_.size())) {
    whole_bytes_ += written;
    waiting_.clear();
    return {};
  }
  // A part of what was to be written means a full disk.
  const Error error = file_error("write", path_, written < 0 ? errno : ENOSPC);
  if (written > 0 && ::ftruncate(fd_.get(), whole_bytes_) != 0) {
    return file_error("shorten", path_, errno);
  }
  return error;
}

Result<void> MetricsFile::finish() {
  if (!waiting_.empty()) MOTLEY_TRY(write_waiting());
  if (left_out_ == 0) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} lines are missing from {}", left_out_, path_.string()),
               "it could not be written for so long that memory for them ran out", ""};
}

MetricsFile::MetricsFile(OwnedFd fd, std::filesystem::path path, std::int64_t whole_bytes)
    : fd_(std::move(fd)), path_(std::move(path)), whole_bytes_(whole_bytes) {}

}  // namespace motley

#include "cluster/follow/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "base/system/files.h"

namespace motley {
namespace {

// Calls `on_line(length in bytes, its step)` for each whole line of the file, which stands at the
// beginning of one, until it returns false. A line that cannot be read has no step.
template <class OnLine>
void for_each_line(std::ifstream& file, const std::filesystem::path& path, OnLine on_line) {
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const Result<Json> metrics = parse_json(line, path.string());
    const Result<std::int64_t> step =
        metrics ? json_get<std::int64_t>(*metrics, "step", path.string()) : metrics.error();
    const auto bytes = static_cast<std::int64_t>(line.size()) + 1;
    if (!on_line(bytes, step ? std::optional(*step) : std::nullopt)) return;
  }
}

// The length in bytes of the whole lines before the first one of a step after `last_step`. A line
// that cannot be read says nothing of those around it, so it stays.
std::int64_t bytes_through(const std::filesystem::path& path, std::int64_t last_step) {
  std::int64_t all_bytes = 0;
  std::ifstream file(path, std::ios::binary);
  for_each_line(file, path, [&](std::int64_t bytes, std::optional<std::int64_t> step) {
    if (step && *step > last_step) return false;
    all_bytes += bytes;
    return true;
  });
  return all_bytes;
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

std::int64_t last_metrics_step(const std::filesystem::path& path) {
  // Some lines of the many that a long run has.
  constexpr std::int64_t kEndBytes = 1 << 16;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::int64_t begin = static_cast<std::int64_t>(file.tellg()) - kEndBytes;
  file.seekg(std::max<std::int64_t>(begin, 0));
  if (std::string rest; begin > 0) std::getline(file, rest);
  std::int64_t last = 0;
  for_each_line(file, path, [&](std::int64_t, std::optional<std::int64_t> step) {
    last = step.value_or(last);
    return true;
  });
  return last;
}

}  // namespace motley

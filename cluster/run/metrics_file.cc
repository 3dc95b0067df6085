#include "cluster/run/metrics_file.h"

#include <fcntl.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include "base/system/files.h"

namespace motley {
namespace {

// The length in bytes of the leading lines that are whole and of steps up to `last_step`.
std::int64_t bytes_through(const std::filesystem::path& path, std::int64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  std::int64_t bytes = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const Result<Json> metrics = parse_json(line, path.string());
    if (!metrics) break;
    const Result<std::int64_t> step = json_get<std::int64_t>(*metrics, "step", path.string());
    if (!step || *step > last_step) break;
    bytes += static_cast<std::int64_t>(line.size()) + 1;
  }
  return bytes;
}

}  // namespace

Result<MetricsFile> MetricsFile::open(const std::filesystem::path& path,
                                      std::int64_t resumed_step) {
  OwnedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.open()) return file_error("open", path, errno);
  if (::ftruncate(fd.get(), bytes_through(path, resumed_step)) != 0) {
    return file_error("shorten", path, errno);
  }
  return MetricsFile(std::move(fd), path);
}

Result<void> MetricsFile::append(const Json& metrics) {
  const std::string line = metrics.dump() + "\n";
  const ssize_t written = ::write(fd_.get(), line.data(), line.size());
  // A part of a line means a full disk; what is there of it is cut off at the next resume.
  if (written != static_cast<ssize_t>(line.size())) {
    return file_error("write", path_, written < 0 ? errno : ENOSPC);
  }
  return {};
}

MetricsFile::MetricsFile(OwnedFd fd, std::filesystem::path path)
    : fd_(std::move(fd)), path_(std::move(path)) {}

}  // namespace motley

#include "record/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/system/files.h"
#include "base/system/owned_fd.h"

namespace motley {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

// Calls `on_line(length in bytes, its step)` for each whole line of the file from `offset` on,
// until it returns false. An unreadable line has no step.
template <class OnLine>
void for_each_line(int fd, std::int64_t offset, const std::filesystem::path& path, OnLine on_line) {
  std::string lines;
  std::vector<char> block(kBlockBytes);
  for (;;) {
    const ssize_t count = ::pread(fd, block.data(), block.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    offset += count;
    std::size_t unsearched = lines.size();
    lines.append(block.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end; (end = lines.find('\n', unsearched)) != std::string::npos;) {
      const Result<Json> metrics = parse_json(lines.substr(begin, end - begin), path.string());
      const Result<std::int64_t> step =
          metrics ? json_get<std::int64_t>(*metrics, "step", path.string()) : metrics.error();
      const auto bytes = static_cast<std::int64_t>(end - begin) + 1;
      if (!on_line(bytes, step ? std::optional(*step) : std::nullopt)) return;
      begin = unsearched = end + 1;
    }
    lines.erase(0, begin);
  }
}

// The length in bytes of the whole lines before the first one of a step after `last_step`.
// Unreadable lines before it are retained.
std::int64_t bytes_through(const std::filesystem::path& path, std::int64_t last_step) {
  const Result<OwnedFd> file = open_file(path, O_RDONLY);
  if (!file.ok()) return 0;  // absent, or refused when it is opened for writing
  std::int64_t all_bytes = 0;
  for_each_line(file->get(), 0, path, [&](std::int64_t bytes, std::optional<std::int64_t> step) {
    if (step && *step > last_step) return false;
    all_bytes += bytes;
    return true;
  });
  return all_bytes;
}

}  // namespace

Result<MetricsFile> MetricsFile::open(const std::filesystem::path& path,
                                      std::int64_t resumed_step) {
  constexpr std::size_t kWaitingBytesMax = 64 << 20;
  MOTLEY_ASSIGN(AppendedFile file,
                AppendedFile::open(path, bytes_through(path, resumed_step), kWaitingBytesMax));
  return MetricsFile(std::move(file));
}

Result<void> MetricsFile::append(const Json& metrics) {
  return file_.append(metrics.dump() + "\n");
}

Result<void> MetricsFile::finish() {
  return file_.finish();
}

std::int64_t last_metrics_step(const std::filesystem::path& path) {
  const Result<OwnedFd> file = open_file(path, O_RDONLY);
  if (!file.ok()) return 0;
  const std::int64_t size = ::lseek(file->get(), 0, SEEK_END);
  // The end of a long file is enough; a larger part if its lines are long.
  for (std::int64_t wanted = 1 << 16;; wanted *= 16) {
    const std::int64_t begin = std::max<std::int64_t>(size - wanted, 0);
    std::optional<std::int64_t> last;
    bool is_first = true;
    for_each_line(file->get(), begin, path, [&](std::int64_t, std::optional<std::int64_t> step) {
      // The first line may lack its beginning.
      if (step && (begin == 0 || !is_first)) last = step;
      is_first = false;
      return true;
    });
    if (last || begin == 0) return last.value_or(0);
  }
}

}  // namespace motley

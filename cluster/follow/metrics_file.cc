#include "cluster/follow/metrics_file.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

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

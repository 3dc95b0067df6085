#include "cluster/run_record/event_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "base/system/files.h"
#include "base/system/owned_fd.h"

namespace motley {
namespace {

// Longest text of an event; readers bound the length of a line.
constexpr std::size_t kTextBytesMax = 4000;

// Whether the last line was cut off by a crash: the next event must then start a line of its own.
bool has_truncated_line(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

Result<void> append_line(const std::filesystem::path& path, const std::string& line) {
  MOTLEY_ASSIGN(const OwnedFd fd, open_file(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW));
  const std::string whole = (has_truncated_line(fd.get()) ? "\n" : "") + line + "\n";
  const ssize_t written = ::write(fd.get(), whole.data(), whole.size());
  if (written == static_cast<ssize_t>(whole.size())) return {};
  return file_error("write", path, written < 0 ? errno : ENOSPC);
}

}  // namespace

void EventLog::emit(RunEventKind kind,
                    std::int64_t step,
                    const std::string& text,
                    const std::string& machine) const {
  before_line_();
  switch (kind) {
    case RunEventKind::kStarted:
    case RunEventKind::kResumed:
    case RunEventKind::kEnded:
      log_.debug(text);
      break;
    case RunEventKind::kCheckpoint:
    case RunEventKind::kRestarted:
    case RunEventKind::kReplanned:
      log_.info(text);
      break;
    case RunEventKind::kCheckpointFailed:
    case RunEventKind::kMetricsFailed:
    case RunEventKind::kLost:
    case RunEventKind::kWarning:
      log_.warn(text);
      break;
  }
  const RunEvent event{unix_time_s(), step, kind, excerpt(text, kTextBytesMax), machine};
  // A text may quote a path, which may contain any bytes: invalid UTF-8 is replaced.
  const std::string line =
      run_event_to_json(event).dump(-1, ' ', false, Json::error_handler_t::replace);
  const Result<void> appended = append_line(file_, line);
  if (appended.ok()) return;
  log_.warn_once(
      fmt::format("{}: {}; the run continues", appended.error().what, appended.error().cause));
}

}  // namespace motley

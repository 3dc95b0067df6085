#include "tests/support/disk_recording.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <system_error>

#include "tests/support/disk_model.h"

namespace motley::testing {
namespace {

namespace fs = std::filesystem;

// One per process: the recorder opens it once.
class LogFile {
 public:
  static const fs::path& path() {
    static const LogFile file;
    return file.path_;
  }

  ~LogFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

 private:
  LogFile() = default;

  const fs::path path_ = fs::temp_directory_path() / fmt::format("motley-disk-log-{}", ::getpid());
};

}  // namespace

void begin_recording(const fs::path& folder) {
  ::setenv("MOTLEY_DISK_LOG", LogFile::path().c_str(), 1);
  ::setenv("MOTLEY_DISK_ROOT", fs::canonical(folder).c_str(), 1);
}

std::vector<DiskOperation> end_recording() {
  ::unsetenv("MOTLEY_DISK_ROOT");
  std::ostringstream text;
  text << std::ifstream(LogFile::path(), std::ios::binary).rdbuf();
  fs::resize_file(LogFile::path(), 0);
  return parse_disk_log(text.str());
}

void mark(const std::string& text) {
  if (::getenv("MOTLEY_DISK_ROOT") == nullptr) return;
  const std::string record =
      format_record({.action = DiskAction::kMark, .path = {}, .other = text});
  std::ofstream(LogFile::path(), std::ios::app | std::ios::binary) << record;
}

}  // namespace motley::testing

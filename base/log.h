// Log: lines for people, on stderr by default. Passed in where needed; there is no global logger.
// Levels: error (this run ends), warn (somebody should look), info (few lines a run), debug.
// Safe to use from several threads.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spdlog {
class logger;

namespace sinks {
class sink;
}
}  // namespace spdlog

namespace motley {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

class Log {
 public:
  // Takes each line, with its end.
  using Output = std::function<void(std::string_view line)>;

  // Lines of `level` and above go to stderr or to `output`, each with `prefix` (may be empty)
  // before it.
  explicit Log(std::string_view prefix, LogLevel level = LogLevel::kInfo, Output output = {});
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // From now on all lines, of every level and with their time, are also added to this file, and to
  // none that was named before.
  // kCorrupt when it cannot be opened. REQUIRES: no other thread uses the log.
  [[nodiscard]] Result<void> keep_in(const std::filesystem::path& file);

  // Adds how a run ended to the file alone, where there is one; the person is told elsewhere.
  void keep(const Error& ending) const;

  void debug(const std::string& line) const;
  void info(const std::string& line) const;
  void warn(const std::string& line) const;
  // Unless this log has warned so already.
  void warn_once(const std::string& line) const;
  void error(const std::string& line) const;

 private:
  std::unique_ptr<spdlog::logger> logger_;
  std::shared_ptr<spdlog::sinks::sink> file_;  // also one of the logger's
  mutable std::mutex mutex_;
  mutable std::set<std::string> warned_;  // guarded by mutex_: by warn_once
};

}  // namespace motley

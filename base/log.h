// Log: lines for people, on stderr by default. Passed in where needed; there is no global logger.
// Levels: error (this run ends), warn (needs attention), info (few lines per run), debug. Safe to
// use from several threads.
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
  // Receives each line, including its line end.
  using Output = std::function<void(std::string_view line)>;

  // Lines of `level` and above go to stderr, or to `output` if given, each preceded by `prefix`
  // (may be empty).
  explicit Log(std::string_view prefix, LogLevel level = LogLevel::kInfo, Output output = {});
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // From now on all lines, of every level and with their times, are also appended to this file
  // instead of any file set before. kCorrupt if it cannot be opened. REQUIRES: no other thread uses
  // the log.
  [[nodiscard]] Result<void> write_to(const std::filesystem::path& file);

  // Appends the error that ended the run to the file only, if there is one. The caller prints it.
  void keep(const Error& ending) const;

  void debug(const std::string& line) const;
  void info(const std::string& line) const;
  void warn(const std::string& line) const;
  // Does nothing if this log has already warned with the same line.
  void warn_once(const std::string& line) const;
  void error(const std::string& line) const;

 private:
  std::unique_ptr<spdlog::logger> logger_;
  std::shared_ptr<spdlog::sinks::sink> file_;  // also a sink of logger_
  mutable std::mutex mutex_;
  mutable std::set<std::string> warned_;  // guarded by mutex_; used by warn_once
};

}  // namespace motley

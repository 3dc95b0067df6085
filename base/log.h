// Log: lines for people, on stderr by default. Passed in where needed; there is no global logger.
// Levels: error (this run ends), warn (somebody should look), info (few lines a run), debug.
// Safe to use from several threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
}

namespace motley {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

class Log {
 public:
  // Lines go to stderr, each with `prefix` (may be empty) before it.
  explicit Log(std::string_view prefix, LogLevel level = LogLevel::kInfo);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(const std::string& line) const;
  void info(const std::string& line) const;
  void warn(const std::string& line) const;
  void error(const std::string& line) const;

 private:
  std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace motley

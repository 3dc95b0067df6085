#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace motley {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

Log::Log(std::string_view prefix, LogLevel level)
    : logger_(std::make_unique<spdlog::logger>(std::string(prefix),
                                               std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_pattern(prefix.empty() ? "%l: %v" : "%n: %l: %v");
  logger_->set_level(to_spdlog(level));
  logger_->flush_on(spdlog::level::debug);
}

Log::~Log() = default;

void Log::debug(const std::string& line) const {
  logger_->debug("{}", line);
}

void Log::info(const std::string& line) const {
  logger_->info("{}", line);
}

void Log::warn(const std::string& line) const {
  logger_->warn("{}", line);
}

void Log::error(const std::string& line) const {
  logger_->error("{}", line);
}

}  // namespace motley

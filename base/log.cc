#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <mutex>
#include <system_error>
#include <utility>

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

class OutputSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit OutputSink(Log::Output output) : output_(std::move(output)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    output_({line.data(), line.size()});
  }

  void flush_() override {}

 private:
  const Log::Output output_;
};

spdlog::sink_ptr make_sink(Log::Output output) {
  if (!output) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  return std::make_shared<OutputSink>(std::move(output));
}

}  // namespace

Log::Log(std::string_view prefix, LogLevel level, Output output)
    : logger_(std::make_unique<spdlog::logger>(std::string(prefix), make_sink(std::move(output)))) {
  logger_->set_pattern(prefix.empty() ? "%l: %v" : "%n: %l: %v");
  logger_->set_level(spdlog::level::debug);
  logger_->sinks().front()->set_level(to_spdlog(level));
  logger_->flush_on(spdlog::level::debug);
  // The library's own messages would corrupt a progress line on the screen. A failed write to the
  // log file is not worth reporting: a full disk is reported by the writes that matter.
  logger_->set_error_handler([](const std::string&) {});
}

Log::~Log() = default;

Result<void> Log::write_to(const std::filesystem::path& file) {
  // The library would follow a symbolic link, and block on a pipe.
  std::error_code ignored;
  const auto type = std::filesystem::symlink_status(file, ignored).type();
  if (type != std::filesystem::file_type::not_found &&
      type != std::filesystem::file_type::regular) {
    return Error{ErrorCode::kCorrupt, "cannot write " + file.string(), "it is not a regular file",
                 "remove it"};
  }
  try {
    std::erase(logger_->sinks(), file_);
    file_ = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    file_->set_pattern("%Y-%m-%d %H:%M:%S %l: %v");
    logger_->sinks().push_back(file_);
  } catch (const spdlog::spdlog_ex& refused) {
    return Error{ErrorCode::kCorrupt, "cannot write " + file.string(), refused.what(), ""};
  }
  return {};
}

void Log::keep(const Error& ending) const {
  if (file_ == nullptr) return;
  std::string text = in_full(ending);
  text.pop_back();  // the logger adds the line's end
  const auto level = is_stop(ending) ? spdlog::level::info : spdlog::level::err;
  try {
    file_->log(spdlog::details::log_msg("", level, text));
    file_->flush();
  } catch (const spdlog::spdlog_ex&) {
    // Disk full: the error that ended the run is more important, and it is reported elsewhere.
  }
}

void Log::debug(const std::string& line) const {
  logger_->debug("{}", line);
}

void Log::info(const std::string& line) const {
  logger_->info("{}", line);
}

void Log::warn(const std::string& line) const {
  logger_->warn("{}", line);
}

void Log::warn_once(const std::string& line) const {
  const std::lock_guard lock(mutex_);
  if (warned_.insert(line).second) warn(line);
}

void Log::error(const std::string& line) const {
  logger_->error("{}", line);
}

}  // namespace motley

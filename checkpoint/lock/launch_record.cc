#include "checkpoint/lock/launch_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <system_error>

#include "base/json.h"
#include "base/result.h"
#include "base/system/files.h"
#include "base/system/owned_fd.h"
#include "checkpoint/fencing_token.h"

namespace motley {
namespace {

constexpr std::uint64_t kFileBytesMax = 1 << 16;
constexpr const char* kHeldWord = "held";
constexpr const char* kFree = "free";
constexpr const char* kLeft = "left";

const char* state_of(const LaunchRecord& record) {
  if (record.is_free) return kFree;
  return record.is_left ? kLeft : kHeldWord;
}

}  // namespace

std::string launch_record_text(const LaunchRecord& record) {
  const ProcessIdentity& process = record.process;
  Json json = {{"launch", record.launch},   {"state", state_of(record)}, {"host", process.host},
               {"pid", process.pid},        {"since", record.since},     {"place", process.place},
               {"started", process.started}};
  if (!process.installation.empty()) json["installation"] = process.installation;
  if (record.is_of_worker) json["worker"] = true;
  return json.dump() + "\n";
}

std::optional<LaunchRecord> read_launch_record(const std::filesystem::path& run_dir,
                                               std::int64_t number) {
  const std::filesystem::path path = launch_file(run_dir, number);
  // NFS queries the server for a file's times on open, not on stat.
  const Result<OwnedFd> fd = open_file(path, O_RDONLY);

  struct stat info {};

  if (!fd.ok() || ::fstat(fd->get(), &info) != 0) return {};
  LaunchRecord record{.number = number, .renewed = info.st_mtim};
  const Result<std::string> text = read_file(path, kFileBytesMax);
  const Result<Json> json = text ? parse_json(*text, path.string()) : text.error();
  if (!json || !json->is_object()) return record;
  record.is_known = true;
  const auto string = [&](const char* key) {
    const Result<std::string> value = json_get<std::string>(*json, key, path.string());
    return value ? *value : std::string();
  };
  const auto number_of = [&](const char* key) {
    const auto value = json_get<std::int64_t>(*json, key, path.string());
    return value ? *value : 0;
  };
  record.launch = string("launch");
  record.is_free = string("state") == kFree;
  record.is_left = string("state") == kLeft;
  record.since = string("since");
  const auto is_of_worker = json_get<bool>(*json, "worker", path.string());
  record.is_of_worker = is_of_worker && *is_of_worker;
  record.process = {string("host"), string("place"), number_of("pid"),
                    static_cast<std::uint64_t>(number_of("started")), string("installation")};
  return record;
}

std::int64_t last_launch(const std::filesystem::path& run_dir) {
  std::int64_t last = 0;
  std::error_code code;
  std::filesystem::directory_iterator it(launches_folder(run_dir), code);
  for (; !code && it != std::filesystem::directory_iterator(); it.increment(code)) {
    const std::string stem = it->path().stem().string();
    std::int64_t number = 0;
    std::from_chars(stem.data(), stem.data() + stem.size(), number);
    if (launch_file(run_dir, number) == it->path()) last = std::max(last, number);
  }
  return last;
}

std::optional<LaunchRecord> active_launch(const std::filesystem::path& run_dir) {
  constexpr std::time_t kRecent_s = 60;
  auto record = read_launch_record(run_dir, last_launch(run_dir));
  if (!record || !record->is_known || record->is_free) return {};
  const ProcessLiveness fate = liveness_of(record->process);
  // A clock that was set back leaves times in the future.
  const bool is_recent = std::abs(std::time(nullptr) - record->renewed.tv_sec) < kRecent_s;
  if (fate == ProcessLiveness::kGone || (fate == ProcessLiveness::kElsewhere && !is_recent))
    return {};
  return record;
}

std::string describe_launch(const LaunchRecord& record) {
  if (!record.is_known) return "an unidentified launcher";
  const std::string process = fmt::format("process {} on {}, since {}", record.process.pid,
                                          excerpt(record.process.host), excerpt(record.since));
  if (!record.is_of_worker) return process;
  return "worker " + process + ", of a launcher that may be on another machine";
}

}  // namespace motley

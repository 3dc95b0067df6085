#include "checkpoint/fencing_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "base/system/files.h"

namespace motley {
namespace {

constexpr std::size_t kNonceDigits = 16;
constexpr std::uint64_t kLaunchBytesMax = 1 << 16;

}  // namespace

std::string launch_text(const LaunchId& launch) {
  return fmt::format("{:06}-{}", launch.number, launch.nonce);
}

Result<LaunchId> parse_launch(const std::string& text) {
  LaunchId launch;
  const std::size_t dash = text.find('-');
  if (dash != text.npos) {
    std::from_chars(text.data(), text.data() + dash, launch.number);
    launch.nonce = text.substr(dash + 1);
  }
  const bool is_nonce = launch.nonce.size() == kNonceDigits &&
                        launch.nonce.find_first_not_of("0123456789abcdef") == text.npos;
  if (!is_nonce || launch.number < 1 || launch_text(launch) != text) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("'{}' is not the token of a launch", excerpt(text)), "",
                 "use the same version of Motley on every machine"};
  }
  return launch;
}

std::filesystem::path launches_folder(const std::filesystem::path& run_dir) {
  return run_dir / "launches";
}

std::filesystem::path launch_file(const std::filesystem::path& run_dir, std::int64_t number) {
  return launches_folder(run_dir) / fmt::format("{:06}.json", number);
}

Result<void> require_launch(const std::filesystem::path& run_dir, const std::string& launch) {
  MOTLEY_ASSIGN(const LaunchId id, parse_launch(launch));
  const std::filesystem::path path = launch_file(run_dir, id.number);
  const char* const remedy =
      "share the folder between the machines under one path (NFS, for example), and choose it with "
      "--run";
  const Result<std::string> text = read_file(path, kLaunchBytesMax);
  if (!text) {
    return Error{
        ErrorCode::kConfig,
        fmt::format("the launcher's run folder {} does not exist on this machine",
                    run_dir.string()),
        fmt::format("every machine writes its part of a checkpoint into it, and here {} cannot be "
                    "read",
                    path.string()),
        remedy};
  }
  const Result<Json> json = parse_json(*text, path.string());
  const Result<std::string> found =
      json ? json_get<std::string>(*json, "launch", path.string()) : json.error();
  if (found && *found == launch) return {};
  return Error{
      ErrorCode::kConfig,
      fmt::format("the run folder {} on this machine is not the launcher's", run_dir.string()),
      "it is another folder of that name, or a copy: its last launch differs", remedy};
}

OwnedFd mark_worker(const std::filesystem::path& run_dir, const std::string& launch) {
  const Result<LaunchId> id = parse_launch(launch);
  if (!id.ok()) return {};
  Result<OwnedFd> fd = open_regular_file(launch_file(run_dir, id->number), O_RDONLY);
  if (!fd.ok() || ::flock(fd->get(), LOCK_SH | LOCK_NB) != 0) return {};
  return *std::move(fd);
}

bool has_workers(const std::filesystem::path& run_dir, std::int64_t number) {
  const Result<OwnedFd> fd = open_regular_file(launch_file(run_dir, number), O_RDWR);
  return fd.ok() && ::flock(fd->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace motley

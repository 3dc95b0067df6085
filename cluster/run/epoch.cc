#include "cluster/run/epoch.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <string>
#include <system_error>

#include "base/system/files.h"

namespace motley {
namespace {

constexpr std::uint64_t kBytesMax = 64;

std::filesystem::path epoch_path(const std::filesystem::path& run_dir) {
  return run_dir / "epoch";
}

Error unusable(const std::filesystem::path& run_dir, const std::string& cause) {
  return {ErrorCode::kCorrupt,
          fmt::format("cannot tell this launch from others, {}", epoch_path(run_dir).string()),
          cause, "write a number into it that is higher than the launches into this folder so far"};
}

}  // namespace

Result<std::uint32_t> current_epoch(const std::filesystem::path& run_dir) {
  std::error_code code;
  if (!std::filesystem::exists(epoch_path(run_dir), code) && !code) return std::uint32_t{0};
  MOTLEY_ASSIGN(const std::string text, read_file(epoch_path(run_dir), kBytesMax));
  std::uint32_t epoch = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, epoch);
  const bool is_whole = rest == end || (rest + 1 == end && *rest == '\n');
  if (failure != std::errc() || !is_whole) return unusable(run_dir, "it holds no number");
  return epoch;
}

Result<std::uint32_t> begin_epoch(const std::filesystem::path& run_dir) {
  MOTLEY_ASSIGN(const std::uint32_t last, current_epoch(run_dir));
  if (last == std::numeric_limits<std::uint32_t>::max()) {
    return unusable(run_dir, "no higher number is left");
  }
  MOTLEY_TRY(write_file_atomic(epoch_path(run_dir), fmt::format("{}\n", last + 1)));
  return last + 1;
}

}  // namespace motley

#include "tools/under_way.h"

#include <fmt/format.h>

#include "base/system/files.h"
#include "base/toml.h"
#include "checkpoint/lock/launch_record.h"
#include "cluster/follow/metrics_file.h"
#include "cluster/run/run_folder.h"
#include "job/config_io.h"

namespace motley {
namespace {

std::int64_t steps_of(const std::filesystem::path& config_path) {
  const auto text = read_file(config_path, kTomlBytesMax);
  if (!text.ok()) return 0;
  const auto resolved = resolve_config(*text, config_path.string(), {}, {});
  return resolved.ok() ? resolved->config.train.steps : 0;
}

}  // namespace

std::string UnderWay::text() const {
  if (last_step == 0) return fmt::format("{}: no step completed yet", launcher);
  const std::string of = steps > 0 ? fmt::format(" of {}", steps) : "";
  return fmt::format("{}: step {}{} completed", launcher, last_step, of);
}

std::optional<UnderWay> training_under_way(const std::filesystem::path& run) {
  const auto launch = launch_under_way(run);
  if (!launch) return {};
  const RunFolder folder(run);
  return UnderWay{describe_launch(*launch), last_metrics_step(folder.metrics_path()),
                  steps_of(folder.config_path())};
}

}  // namespace motley

#include "cli/active_training.h"

#include <fmt/format.h>

#include "base/system/files.h"
#include "base/toml.h"
#include "checkpoint/lock/launch_record.h"
#include "record/metrics_file.h"
#include "record/run_folder.h"
#include "run_config/config_io.h"

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

std::optional<UnderWay> active_training(const std::filesystem::path& run) {
  const auto launch = active_launch(run);
  if (!launch) return {};
  const RunFolder folder(run);
  return UnderWay{describe_launch(*launch), last_metrics_step(folder.metrics_path()),
                  steps_of(folder.config_path())};
}

}  // namespace motley

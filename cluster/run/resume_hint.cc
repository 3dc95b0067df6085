#include "cluster/run/resume_hint.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "cluster/run/left_save.h"

namespace motley {
namespace {

// A sentence that precedes a command or stands alone.
std::string hint_text(ErrorCode code,
                      const std::vector<CheckpointInfo>& checkpoints,
                      std::optional<std::int64_t> left) {
  if (left) return fmt::format("--resume continues from step {}, which the workers saved", *left);
  if (checkpoints.empty()) return "no checkpoint was saved yet: restart without --resume";
  const std::string hint =
      fmt::format("--resume continues from the checkpoint of step {}", checkpoints.back().step);
  if (code != ErrorCode::kDiverged) return hint;
  return hint +
         (checkpoints.size() > 1
              ? "; if it diverges again, move that checkpoint away to continue from the one before"
              : "; if it diverges again, restart with another --run");
}

}  // namespace

Error with_resume_hint(Error error,
                       const std::filesystem::path& run_dir,
                       std::int64_t first_step,
                       const Commands& commands) {
  const auto checkpoints = list_checkpoints(run_dir);
  const bool has_saved = !checkpoints.empty() && checkpoints.back().step >= first_step;
  const std::string& resume = has_saved ? commands.resume_settled : commands.resume;
  const auto left = left_save(run_dir);
  const std::string& command = checkpoints.empty() && !left ? commands.again : resume;
  if (!error.remedy.empty()) error.remedy += command.empty() ? "; " : "\n";
  error.remedy += hint_text(error.code, checkpoints, left);
  if (!command.empty()) error.remedy += "\n" + command;
  return error;
}

}  // namespace motley

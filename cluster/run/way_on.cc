#include "cluster/run/way_on.h"

#include <fmt/format.h>

#include <string>

#include "checkpoint/checkpoint.h"

namespace motley {
namespace {

std::string way_on(ErrorCode code, const std::filesystem::path& run_dir) {
  const auto checkpoints = list_checkpoints(run_dir);
  if (checkpoints.empty()) {
    return "no checkpoint was saved yet: start again in the same folder, without --resume";
  }
  const std::string resumes =
      fmt::format("'--resume' goes on from the checkpoint of step {}", checkpoints.back().step);
  if (code != ErrorCode::kDiverged) return resumes;
  return checkpoints.size() > 1
             ? resumes +
                   "; where it diverges from there too, put that one away to go on from the "
                   "one before"
             : resumes + "; where it diverges from there too, start again with another --run";
}

}  // namespace

Error with_way_on(Error error, const std::filesystem::path& run_dir) {
  error.remedy += error.remedy.empty() ? "" : "; ";
  error.remedy += way_on(error.code, run_dir);
  return error;
}

}  // namespace motley

#include "cluster/run/way_on.h"

#include <fmt/format.h>

#include <string>

#include "checkpoint/checkpoint.h"

namespace motley {

Error with_way_on(Error error, const std::filesystem::path& run_dir) {
  const auto checkpoints = list_checkpoints(run_dir);
  error.remedy += error.remedy.empty() ? "" : "; ";
  error.remedy +=
      checkpoints.empty()
          ? "no checkpoint was saved yet: start again in the same folder, without --resume"
          : fmt::format("'--resume' goes on from the checkpoint of step {}",
                        checkpoints.back().step);
  return error;
}

}  // namespace motley

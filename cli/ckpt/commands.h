// The `motley ckpt` commands with their own files.
#pragma once

#include "cli/command.h"

namespace motley {

[[nodiscard]] Command ckpt_verify_command();
[[nodiscard]] Command ckpt_diff_command();
[[nodiscard]] Command ckpt_reshard_command();
[[nodiscard]] Command ckpt_export_command();
[[nodiscard]] Command ckpt_import_command();
[[nodiscard]] Command ckpt_prune_command();
[[nodiscard]] Command ckpt_gather_command();
[[nodiscard]] Command ckpt_repair_command();

}  // namespace motley

// The command lines that start a run again: for the user to type, and for systemd.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/arguments.h"
#include "cluster/run/resume_hint.h"
#include "cluster/supervisor/service_unit.h"
#include "run_config/config_io.h"

namespace motley {

// The commands that continue this run: the given command line, with the environment variables in
// use.
[[nodiscard]] Commands commands_of(const Arguments& arguments, const ResolvedConfig& resolved);

// --service: writes the run's unit and starts it, or prints it with --dry-run. kUsage for options
// that a service cannot have; else as write_unit() and start_unit().
[[nodiscard]] Result<void> install_service(const Arguments& arguments,
                                           const ResolvedConfig& resolved);

}  // namespace motley

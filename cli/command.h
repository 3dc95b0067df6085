// The commands of motley: one table, one file per command or family.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"

namespace motley {

struct Command {
  CommandSpec spec;
  Result<void> (*run)(const Arguments& arguments);
};

[[nodiscard]] Command train_command();
[[nodiscard]] Command launch_command();
[[nodiscard]] Command join_command();
[[nodiscard]] Command init_command();
[[nodiscard]] Command profile_command();
[[nodiscard]] Command probe_command();
[[nodiscard]] Command doctor_command();
[[nodiscard]] Command devices_command();
[[nodiscard]] Command plan_command();
[[nodiscard]] Command simulate_command();
[[nodiscard]] Command watch_command();
[[nodiscard]] Command report_command();
[[nodiscard]] Command generate_command();
[[nodiscard]] Command config_command();
[[nodiscard]] Command completion_command();
[[nodiscard]] std::vector<Command> bench_commands();  // bench codec, transport and allreduce
[[nodiscard]] Command bench_allreduce_command();
[[nodiscard]] std::vector<Command> checkpoint_commands();  // ckpt list, ckpt show, …
[[nodiscard]] std::vector<Command> package_commands();     // package show, package verify
[[nodiscard]] std::vector<Command> data_commands();        // data check

// The hidden command `motley __complete -- WORDS…`, which the completion scripts call: prints the
// completions of the last word (cli/guide/completion.h).
inline constexpr std::string_view kCompleteCommand = "__complete";
void print_completion(std::vector<std::string> words);

// Common texts of the overview and the manual.
inline constexpr std::string_view kPurpose = "train one model on heterogeneous machines";
inline constexpr std::string_view kExitStatuses =
    "0 ok, 2 usage, 3 configuration, 4 a machine or process was lost, 5 not authorised,\n"
    "6 no feasible plan, 7 damaged or unwritable file, 8 unusable data, 9 diverged,\n"
    "130/143 signals\n";

// All commands in the order of the help.
[[nodiscard]] std::vector<Command> all_commands();

}  // namespace motley

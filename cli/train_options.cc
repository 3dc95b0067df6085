#include "cli/train_options.h"

#include <algorithm>
#include <array>

#include "cli/inputs.h"

namespace motley {

std::vector<OptionSpec> train_options() {
  return {
      {"stages", "N", "exactly N stages (default: the fastest number)"},
      cluster_option(),
      links_option(),
      {"plan", "FILE", "run this plan (from `motley plan -o`) instead of making one"},
      profile_option(),
      measure_option(),
      pin_option(),
      {"adapt", "", "switch to a plan that the first steps show to be more than 5 % faster"},
      {"run", "DIR", "the run's folder (run.dir)"},
      {"resume", "", "continue from the newest checkpoint of that folder"},
      {"auto-resume", "", "start the run, or continue it if that folder has it; done if complete"},
      {"service", "", "keep the run going by systemd: write its user unit, and start it"},
      {"no-start", "", "with --service: write the unit only; --dry-run prints it"},
      {"allow-changes", "", "with --resume: allow changes of the results (seed, data, batch, …)"},
      {"stop-after", "N",
       "save and end after step N, as an interruption would; the learning-rate schedule is "
       "unchanged"},
      set_option(),
      {"dry-run", "", "check and plan as usual, print what would run, but train and write nothing"},
      {"quiet", "", "errors and warnings only: no plan, no progress, no summary"},
      {"verbose", "", "with the details that otherwise are only in the run's log/motley.log"},
      json_option()};
}

Result<void> check_train_options(const Arguments& arguments) {
  if (arguments.has("plan") && arguments.has("stages")) {
    return Error{ErrorCode::kUsage, "--plan and --stages exclude each other",
                 "a plan determines the number of stages", "leave one of them out"};
  }
  if (arguments.has("plan") && arguments.has("adapt")) {
    return Error{ErrorCode::kUsage, "--plan and --adapt exclude each other",
                 "a given plan is not changed", "leave one of them out"};
  }
  if (arguments.has("quiet") && arguments.has("verbose")) {
    return Error{ErrorCode::kUsage, "--quiet and --verbose exclude each other", "",
                 "leave one of them out"};
  }
  if (arguments.has("resume") && arguments.has("auto-resume")) {
    return Error{ErrorCode::kUsage, "--resume and --auto-resume exclude each other", "",
                 "leave one of them out"};
  }
  if (arguments.has("no-start") && !arguments.has("service")) {
    return Error{ErrorCode::kUsage, "--no-start needs --service", "", "leave it out"};
  }
  const bool resumes =
      std::ranges::any_of(std::array{"resume", "auto-resume", "service", "from-env"},
                          [&](const char* option) { return arguments.has(option); });
  if (arguments.has("allow-changes") && !resumes) {
    return Error{ErrorCode::kUsage, "--allow-changes needs --resume",
                 "a new run has nothing to change", "leave it out"};
  }
  return {};
}

}  // namespace motley

// ServiceUnit: a systemd user unit that keeps a run going: it runs the launcher, and starts it
// again when it was killed or its machine has rebooted. Pure functions; docs/failures.md, "A
// service".
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace motley {

struct ServiceUnit {
  std::filesystem::path run_dir;         // absolute
  std::filesystem::path working_folder;  // absolute: relative paths of the command are from here
  std::vector<std::pair<std::string, std::string>> environment;  // name and value
  std::vector<std::string> command;  // the program by its absolute path; starts or resumes the run
};

// "motley-NAME.service", after the run folder's name; characters that unit names cannot have are
// replaced by '_'.
[[nodiscard]] std::string unit_name(const std::filesystem::path& run_dir);

// REQUIRES: no text has a line feed.
[[nodiscard]] std::string unit_text(const ServiceUnit& unit);

// The run folder that a unit_text names; "" if it is another text.
[[nodiscard]] std::string run_of_unit(const std::string& text);

}  // namespace motley

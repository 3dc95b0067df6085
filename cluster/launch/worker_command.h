// The command that starts a worker on its machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace motley {

// [prefix…] env OMP_NUM_THREADS=N OPENBLAS_NUM_THREADS=N <program>, as an argument list; no shell
// is involved here. A prefix whose program is called ssh is the exception: ssh joins its arguments
// with blanks and lets the shell over there take them apart again, so it gets the command as one
// argument in which each word is quoted.
[[nodiscard]] std::vector<std::string> worker_command(const std::vector<std::string>& prefix,
                                                      const std::filesystem::path& program,
                                                      int threads);

// The same for any other command.
[[nodiscard]] std::vector<std::string> remote_command(const std::vector<std::string>& prefix,
                                                      std::vector<std::string> command);

[[nodiscard]] bool is_ssh(const std::vector<std::string>& prefix);

}  // namespace motley

// The command that starts a worker on its machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace motley {

// [prefix…] env OMP_NUM_THREADS=N OPENBLAS_NUM_THREADS=N <program>, as an argument list; no local
// shell is involved. The exception is a prefix whose program is called ssh: ssh joins its arguments
// with blanks and the remote shell splits them again, so the command is one argument in which each
// word is quoted. A machine that has joined by ticket gets the command in the words of
// docs/formats/join.md instead.
[[nodiscard]] std::vector<std::string> worker_command(const std::vector<std::string>& prefix,
                                                      const std::filesystem::path& program,
                                                      int threads);

// The same for any other command.
[[nodiscard]] std::vector<std::string> remote_command(const std::vector<std::string>& prefix,
                                                      std::vector<std::string> command);

[[nodiscard]] bool is_ssh(const std::vector<std::string>& prefix);

}  // namespace motley

// The standard output of a shell command.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace motley {

struct CommandOutput {
  int status = -1;  // exit status; -1: it could not be started, or was ended by a signal
  std::string text;
};

inline CommandOutput output_of(const std::string& command) {
  CommandOutput output;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char block[4096];
  for (std::size_t count = 0; (count = std::fread(block, 1, sizeof block, pipe)) > 0;) {
    output.text.append(block, count);
  }
  const int ended = ::pclose(pipe);
  if (WIFEXITED(ended)) output.status = WEXITSTATUS(ended);
  return output;
}

}  // namespace motley

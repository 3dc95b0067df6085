// The command prefix of a machine that has joined by ticket (cluster/join/). As with ssh, a process
// here stands for the one there: the hidden command `motley __on SOCKET MACHINE FILES WORDS…`
// passes its standard streams to the program that holds the machine's connection, through a socket
// of this machine, and ends with the exit status of the command there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

inline constexpr std::string_view kOnCommand = "__on";

struct JoinedShell {
  std::filesystem::path program;  // motley, here
  std::filesystem::path socket;   // of the program that holds the connection
  std::string machine;
  // There: the folder with the files that were sent, each under its path here.
  std::filesystem::path files;
};

[[nodiscard]] std::vector<std::string> joined_prefix(const JoinedShell& shell);

// Nothing for any other prefix.
[[nodiscard]] std::optional<JoinedShell> joined_shell(const std::vector<std::string>& prefix);

// The place there of a file or folder that was sent. REQUIRES: `path` is absolute or empty.
[[nodiscard]] std::string path_there(const JoinedShell& shell, const std::string& path);

}  // namespace motley

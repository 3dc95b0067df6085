// What programs of this machine ask of a head (cluster/join/head/join_head.h) through its socket.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/join/join_messages.h"
#include "plan/cluster/joined_shell.h"

namespace motley {

// The exit status of a command that a joined machine did not run, as of ssh.
inline constexpr int kNotRun = 255;

// The hidden command `motley __on SOCKET MACHINE FILES WORDS…` (plan/cluster/joined_shell.h): runs
// a command of docs/formats/join.md with the standard streams of this process, until it has ended
// there. The exit status of this process; kills it by the same signal. `arguments`: those after
// __on.
[[nodiscard]] int run_on_joined(const std::vector<std::string>& arguments);

// Sends the files that the machine's cache lacks, and places each at path_there(). Returns the
// bytes sent; `progress` is called now and then with those sent so far. kPeer if the machine is
// lost; kCorrupt if it has no room or a file cannot be read.
[[nodiscard]] Result<std::uint64_t> send_files(
    const JoinedShell& shell,
    const std::vector<OfferedFile>& files,
    const std::function<void(std::uint64_t sent)>& progress);

}  // namespace motley

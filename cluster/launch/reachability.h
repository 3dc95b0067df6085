// Whether machines can be used at all, asked of all at once before any of them has to work.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/folder_mark.h"
#include "base/result.h"
#include "cluster/launch/machine_questions.h"
#include "plan/cluster.h"

namespace motley {

// Whether this version computes on the devices of these machines; "auto" is none yet. kConfig.
[[nodiscard]] Result<void> check_devices(const Cluster& cluster,
                                         const std::set<std::string>& machines);

// Runs `test -x <the machine's motley-stage>` on each of these machines of the cluster, all at the
// same time, as a worker would be started there; what is this machine, with this program, is not
// asked. No worker starts. kConfig as check_devices(); kPeer, which names every machine that does
// not answer within `answer_s` or lacks the program; kInterrupted and kTerminated. `program` is
// motley-stage here.
[[nodiscard]] Result<void> check_reachable(const Cluster& cluster,
                                           const std::set<std::string>& machines,
                                           const std::filesystem::path& program,
                                           double answer_s = kAnswer_s);

// The same question; the machines that cannot be used, by name, and why. kInterrupted and
// kTerminated.
[[nodiscard]] Result<std::map<std::string, std::string>> find_unusable(
    const Cluster& cluster,
    const std::set<std::string>& machines,
    const std::filesystem::path& program,
    double answer_s);

// Whether each of these machines that is not this one sees the same package of a model: every
// machine reads it for itself. Asks the machines' shells; no worker starts. kConfig, naming each
// machine that lacks it or has another one and a command that copies it there; kPeer where one does
// not answer.
[[nodiscard]] Result<void> check_package_seen(const Cluster& cluster,
                                              const std::set<std::string>& machines,
                                              const FolderMark& package,
                                              double answer_s = kAnswer_s);

}  // namespace motley

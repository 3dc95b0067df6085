// Checks that machines are usable, all in parallel, before any of them is needed.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/folder_fingerprint.h"
#include "base/result.h"
#include "cluster/launch/machine_queries.h"
#include "plan/cluster.h"

namespace motley {

// kConfig unless this version computes on the devices of these machines; an unexpanded "auto"
// passes.
[[nodiscard]] Result<void> check_devices(const Cluster& cluster,
                                         const std::set<std::string>& machines);

// Runs `test -x <the machine's motley-stage>` on each of these machines of the cluster in parallel,
// started like a worker. The launcher's own machine with the launcher's own program is skipped. No
// worker starts. kConfig as check_devices(); kPeer naming every machine that does not answer within
// `answer_s` or lacks the program; kInterrupted and kTerminated. `program` is motley-stage here.
[[nodiscard]] Result<void> check_reachable(const Cluster& cluster,
                                           const std::set<std::string>& machines,
                                           const std::filesystem::path& program,
                                           double answer_s = kResponse_s);

// The same check; returns the unusable machines by name, with the reason. kInterrupted and
// kTerminated.
[[nodiscard]] Result<std::map<std::string, std::string>> find_unusable(
    const Cluster& cluster,
    const std::set<std::string>& machines,
    const std::filesystem::path& program,
    double answer_s);

// The same on a thread that does not receive the signals.
[[nodiscard]] Result<std::map<std::string, std::string>> find_unusable(
    const Cluster& cluster,
    const std::set<std::string>& machines,
    const std::filesystem::path& program,
    double answer_s,
    const QueryInterrupt& interrupt);

// Checks that each of these machines that is not the launcher's sees the same model package: every
// machine reads it for itself. Those that have joined by ticket got theirs from here. Runs shell
// commands there; no worker starts. kConfig naming each machine that lacks the package or has
// another one, with a command that copies it there; kPeer if one does not answer.
[[nodiscard]] Result<void> check_package_seen(const Cluster& cluster,
                                              const std::set<std::string>& machines,
                                              const FolderFingerprint& package,
                                              double answer_s = kResponse_s);

}  // namespace motley

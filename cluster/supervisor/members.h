// The machines of a run: which of them answer, and the request without the others.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/planning/resolve_plan.h"
#include "cluster/supervisor/decide.h"
#include "plan/cluster.h"

namespace motley {

// A login takes a second or two on a busy machine; one that is off never answers.
inline constexpr double kMemberResponse_s = 8;

// Queries these machines of the cluster in parallel, each with kMemberResponse_s to answer.
// kInterrupted and kTerminated.
[[nodiscard]] Result<std::vector<Member>> query_members(const Cluster& cluster,
                                                        const std::set<std::string>& machines,
                                                        const std::filesystem::path& program);

// Whether it has joined the run by ticket.
[[nodiscard]] bool has_joined(const Cluster& cluster, const std::string& machine);

// The same machines, as if all answered.
[[nodiscard]] std::vector<Member> members_of(const std::set<std::string>& machines);

// "box does not answer and is left out".
[[nodiscard]] std::string left_out_text(const std::vector<std::string>& machines);

// "box: no answer within 8 s; attic: …", for those that do not answer.
[[nodiscard]] std::string problems_text(const std::vector<Member>& members);

// The request for the remaining machines: without the others, their profiles, the pins that name
// them, and the number of stages, which applied to all.
[[nodiscard]] PlanRequest request_without(PlanRequest request,
                                          const std::vector<std::string>& machines);

}  // namespace motley

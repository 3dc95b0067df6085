#include "cluster/supervisor/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cluster/launch/reachability.h"
#include "plan/cluster/joined_shell.h"
#include "plan/pins.h"

namespace motley {

Result<std::vector<Member>> query_members(const Cluster& cluster,
                                          const std::set<std::string>& machines,
                                          const std::filesystem::path& program) {
  MOTLEY_ASSIGN(const auto unusable, find_unusable(cluster, machines, program, kMemberResponse_s));
  std::vector<Member> members = members_of(machines);
  for (Member& member : members) {
    const auto found = unusable.find(member.machine);
    if (found != unusable.end()) member.problem = found->second;
  }
  return members;
}

bool has_joined(const Cluster& cluster, const std::string& machine) {
  const Machine* const found = cluster.find(machine);
  return found != nullptr && joined_shell(found->shell).has_value();
}

std::vector<Member> members_of(const std::set<std::string>& machines) {
  std::vector<Member> members;
  for (const std::string& machine : machines) members.push_back({.machine = machine});
  return members;
}

std::string problems_text(const std::vector<Member>& members) {
  std::vector<std::string> troubles;
  for (const Member& member : members) {
    if (member.problem.empty()) continue;
    troubles.push_back(fmt::format("{}: {}", member.machine, member.problem));
  }
  return fmt::format("{}", fmt::join(troubles, "; "));
}

std::string left_out_text(const std::vector<std::string>& machines) {
  const bool is_one = machines.size() == 1;
  return fmt::format("{} {} not answer and {} left out", fmt::join(machines, ", "),
                     is_one ? "does" : "do", is_one ? "is" : "are");
}

PlanRequest request_without(PlanRequest request, const std::vector<std::string>& machines) {
  if (machines.empty()) return request;
  const auto is_left_out = [&](const std::string& name) {
    return std::ranges::count(machines, name) > 0;
  };
  std::erase_if(request.cluster.machines,
                [&](const Machine& machine) { return is_left_out(machine.name); });
  std::erase_if(request.known_profile.devices,
                [&](const DeviceProfile& device) { return is_left_out(device.machine); });
  request.config.parallel.pins = pins_without(request.config.parallel.pins, machines);
  request.stages = 0;
  return request;
}

}  // namespace motley

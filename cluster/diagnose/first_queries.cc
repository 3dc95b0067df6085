#include "cluster/diagnose/first_queries.h"

#include <cstdlib>
#include <map>

#include "cluster/launch/machine_queries.h"
#include "cluster/launch/reachability.h"
#include "cluster/launch/workers.h"
#include "cluster/replication/machine_stores.h"

namespace motley {
namespace {

// Exit status 4, with its name as output, if the nearest existing folder is not writable.
constexpr const char* kAskFolder =
    R"(d=$1; case $d in "~/"*) d=$HOME/${d#"~/"};; esac; )"
    R"(while [ ! -e "$d" ]; do d=$(dirname -- "$d"); done; )"
    R"([ -d "$d" ] && [ -w "$d" ] && exit 0; printf %s "$d"; exit 4)";
constexpr int kTakesNoFiles = 4;

std::string launcher_home() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : home;
}

}  // namespace

Result<std::vector<FirstResponse>> query_first(const Cluster& cluster,
                                               const std::filesystem::path& run_dir,
                                               const std::filesystem::path& program) {
  MOTLEY_ASSIGN(const auto unusable,
                find_unusable(cluster, machine_names(cluster), program, kResponse_s));
  std::vector<FirstResponse> answers(cluster.machines.size());
  std::vector<MachineQuery> questions;
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < cluster.machines.size(); ++i) {
    const Machine& machine = cluster.machines[i];
    if (const auto found = unusable.find(machine.name); found != unusable.end()) {
      answers[i].problem = found->second;
    } else if (may_have_own_folder(machine)) {
      const std::string dir = own_dir_of(machine, absolute_normal_path(run_dir), launcher_home());
      questions.push_back({&machine, {"sh", "-c", kAskFolder, "sh", dir}});
      asked.push_back(i);
    }
  }
  MOTLEY_ASSIGN(const auto said, query_machines(questions, kResponse_s));
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i].problem.empty() && said[i].status == kTakesNoFiles) {
      answers[asked[i]].unwritable = said[i].said;
    }
  }
  return answers;
}

}  // namespace motley

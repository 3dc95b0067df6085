#include "cluster/launch/workers.h"

#include <set>

#include "base/check.h"
#include "plan/cluster/virtual_numbers.h"
#include "plan/rank_names.h"

namespace motley {
namespace {

std::string absolute_path(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace

std::set<std::string> machines_in_use(const Plan& plan) {
  std::set<std::string> names;
  for (const RankPlan& rank : plan.ranks) names.insert(rank.machine);
  return names;
}

std::set<std::string> machine_names(const Cluster& cluster) {
  std::set<std::string> names;
  for (const Machine& machine : cluster.machines) names.insert(machine.name);
  return names;
}

std::filesystem::path stage_program_on(const Machine& machine,
                                       const std::filesystem::path& program) {
  if (machine.motley_dir.empty()) return program;
  return std::filesystem::path(machine.motley_dir) / program.filename();
}

std::filesystem::path store_program_on(const Machine& machine,
                                       const std::filesystem::path& program) {
  return stage_program_on(machine, program).parent_path() / "motley-store";
}

Config with_absolute_paths(Config config) {
  config.data.path = absolute_path(config.data.path);
  config.data.holdout_path = absolute_path(config.data.holdout_path);
  config.model.path = absolute_path(config.model.path);
  config.model.init_from = absolute_path(config.model.init_from);
  return config;
}

std::vector<WorkerSpec> training_workers(const Cluster& cluster,
                                         const Plan& plan,
                                         const Config& config,
                                         const std::filesystem::path& program,
                                         const std::filesystem::path& run_dir) {
  std::vector<WorkerSpec> workers;
  for (int index = 0; index < plan.rank_count(); ++index) {
    const Rank rank{index};
    const RankPlan& place = plan.ranks[rank.index()];
    const Machine* machine = cluster.find(place.machine);
    MOTLEY_CHECK(machine != nullptr, "the plan's machine {} was checked before", place.machine);
    WorkerSpec worker{rank_name(plan, rank), *machine, stage_program_on(*machine, program), {}};
    worker.job.verb = "train";
    worker.job.config = with_absolute_paths(config);
    worker.job.plan = plan;
    worker.job.rank = rank;
    worker.job.run_dir = absolute_path(run_dir.string());
    worker.job.bind_address = machine->address;
    worker.job.interface = machine->interface;
    worker.job.device = place.device;
    worker.job.threads = place.threads;
    worker.job.cpu_share = machine->cpu_share;
    if (!capabilities_of(place.device).is_measured) {
      worker.job.virtual_speed = virtual_numbers(*machine, config.train.precision).speed;
    }
    workers.push_back(std::move(worker));
  }
  return workers;
}

}  // namespace motley

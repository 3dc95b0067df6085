#include "cluster/prepare/ask_for_data.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "protocol/data_message.h"

namespace motley {
namespace {

// Of all machines but the launcher's.
std::vector<WorkerSpec> data_workers(const TrainingRequest& request,
                                     const CheckedRequest& checked) {
  std::vector<WorkerSpec> workers;
  for (const Machine& machine : checked.planning.cluster.machines) {
    if (machine.shell.empty() || !checked.machines.names.contains(machine.name)) continue;
    WorkerSpec worker{
        machine.name, machine, stage_program_on(machine, request.machines.stage_program), {}};
    worker.job.verb = "data";
    worker.job.config = with_absolute_paths(request.planning.config);
    workers.push_back(std::move(worker));
  }
  return workers;
}

Error unlike_data(const std::string& name, const SeenData& there, const SeenData& other) {
  return {ErrorCode::kData, fmt::format("{} does not have the data of the other machines", name),
          fmt::format("{} bytes of data there, {} elsewhere, or different content",
                      there.identity.bytes, other.identity.bytes),
          "copy the data from one of the machines to the others, or give train.steps in place of "
          "train.epochs"};
}

}  // namespace

Result<std::optional<SeenData>> ask_for_data(const TrainingRequest& request,
                                             const CheckedRequest& checked,
                                             const Log& log) {
  std::vector<WorkerSpec> workers = data_workers(request, checked);
  std::optional<SeenData> seen;
  if (workers.empty()) return seen;
  std::vector<std::string> names;
  for (const WorkerSpec& worker : workers) names.push_back(worker.name);
  std::vector<std::string> without;
  WorkerGroup group(std::move(workers),
                    {.start_timeout_s = request.planning.config.comm.start_timeout_s}, log);
  MOTLEY_TRY(group.run([&](int worker, const Json& event) -> Result<void> {
    const std::string& name = names[static_cast<std::size_t>(worker)];
    const std::string kind = event.value("event", "");
    if (kind == "no_data") {
      MOTLEY_ASSIGN(const auto cause, json_get<std::string>(event, "cause", name));
      without.push_back(fmt::format("{}: {}", name, cause));
    }
    if (kind != "data") return {};
    MOTLEY_ASSIGN(const DataMessage message, read_data_event(event));
    const SeenData found{{message.bytes, message.hash}, message.epoch_samples};
    if (seen && seen->identity != found.identity) return unlike_data(name, found, *seen);
    seen = found;
    return {};
  }));
  if (!seen) {
    for (const std::string& cause : without) log.warn(excerpt(cause, 500));
  }
  return seen;
}

}  // namespace motley

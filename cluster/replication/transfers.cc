#include "cluster/replication/transfers.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include "base/json.h"
#include "checkpoint/replication/restored_view.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "cluster/replication/free_space.h"
#include "cluster/replication/shards_progress.h"
#include "protocol/transfer_message.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

WorkerSpec transfer_worker(const StoreTransfers& transfers,
                           const InventoryRequest& request,
                           const StoreInventory& stores,
                           const Config& config) {
  const Machine& machine = *request.cluster.find(transfers.machine);
  WorkerSpec worker{machine.name, machine, store_program_on(machine, request.program), {}};
  worker.job.verb = "store";
  worker.job.config = config;
  worker.job.launch = request.launch;
  worker.job.run_id = stores.run;
  const auto dir = stores.dirs.find(machine.name);
  worker.job.run_dir =
      (dir != stores.dirs.end() ? dir->second
                                : stores.by_id.at(transfers.store).contents.location.dir)
          .string();
  worker.job.bind_address = machine.address;
  worker.job.interface = machine.interface;
  worker.job.options = Json{{"move", transfer_order_to_json(transfers.order)}};
  return worker;
}

}  // namespace

Result<std::map<StoreId, std::filesystem::path>> transfer_files(
    const std::vector<StoreTransfers>& transfers,
    const InventoryRequest& request,
    const StoreInventory& stores,
    const Config& config,
    const Log& log) {
  std::map<StoreId, std::filesystem::path> folders;
  if (transfers.empty()) return folders;
  MOTLEY_TRY(require_free_space(transfers, stores));
  std::vector<WorkerSpec> workers;
  std::vector<fs::path> run_dirs;  // [worker] its run folder
  std::set<std::string> machines;
  std::size_t files = 0;
  for (const StoreTransfers& each : transfers) {
    workers.push_back(transfer_worker(each, request, stores, config));
    run_dirs.emplace_back(workers.back().job.run_dir);
    machines.insert(each.machine);
    files += each.order.incoming.size();
    if (!each.order.makes_restored_view) continue;
    const SaveLocation location{workers.back().job.run_dir, request.launch,
                                each.order.manifest.state.step};
    folders[each.store] = restored_view_folder(location);
  }
  MOTLEY_ASSIGN(const TransportChoice transport,
                choose_transport(request.cluster, machines, config.comm));
  MOTLEY_TRY(apply_transport(transport, workers));
  if (files > 0) {
    log.info(fmt::format("{} file{} of the checkpoint need{} copying to other machines", files,
                         files == 1 ? "" : "s", files == 1 ? "s" : ""));
  }
  ShardsProgress progress("preparing the checkpoint", request.line);
  const WorkerGroupOptions options{
      .start_timeout_s = config.comm.start_timeout_s,
      .patience_s = config.comm.patience_s,
      .on_task = [&](int worker, const ProgressBytes& bytes) { progress.take(worker, bytes); },
      .on_fault = request.on_fault};
  WorkerGroup group(std::move(workers), options, log);
  MOTLEY_TRY(group.run([&](int worker, const Json& event) -> Result<void> {
    if (event.value("event", "") != kReadsPartEvent) return {};
    const StoreTransfers& reader = transfers[static_cast<std::size_t>(worker)];
    const fs::path dir = run_dirs[static_cast<std::size_t>(worker)];
    folders[reader.store] = checkpoint_folder(dir, reader.order.manifest.state.step);
    log.warn(fmt::format("{} reads its part of the checkpoint from the files in place: {}",
                         reader.machine, excerpt(event.value("cause", ""))));
    return {};
  }));
  return folders;
}

}  // namespace motley

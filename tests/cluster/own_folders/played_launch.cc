#include "tests/cluster/own_folders/played_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"
#include "cluster/replication/plan_transfers.h"
#include "cluster/replication/repair.h"
#include "cluster/run/checkpoint_committer.h"
#include "cluster/run/folder_replicators.h"
#include "cluster/run/rank_folders.h"
#include "protocol/shard_message.h"
#include "tests/checkpoint/fixture.h"
#include "tests/cluster/own_folders/played_moves.h"
#include "tests/cluster/own_folders/played_rank.h"
#include "tests/support/disk_recording.h"
#include "tests/support/rank_group.h"

namespace motley::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kStallTimeout_s = 20;

PlannedRun planned_run(const PlayedMachines& machines) {
  PlannedRun planned;
  planned.cluster = machines.cluster();
  planned.model = three_layers();
  planned.plan = plan_of(machines.layout());
  planned.config.checkpoint.copies = 1;
  planned.config.checkpoint.keep = machines.layout().keep;
  return planned;
}

// The disk operations of prepare_run(), in the same order.
Result<Launch> prepare_launch(const PlayedMachines& machines, const Log& log) {
  const PlannedRun planned = planned_run(machines);
  const RunFolder folder(machines.run_dir(kDesk));
  MOTLEY_TRY(folder.make());
  MOTLEY_ASSIGN(RunLock acquired, RunLock::acquire(folder.dir(), log));
  auto lock = std::make_unique<RunLock>(std::move(acquired));
  RunShards shards;
  const QueryStores ask = [&](const StoreQuery& store_query) -> Result<StoreInventory> {
    MOTLEY_ASSIGN(shards.stores, machines.ask(lock->launch(), store_query, IfAbsent::kMake));
    return shards.stores;
  };
  MOTLEY_ASSIGN(shards.restore_point, find_restore_point(folder.dir(), lock->launch(), ask, log));
  MOTLEY_TRY(lock->advance_past(shards.stores.last_launch(), log));
  const std::int64_t done = shards.restore_point ? shards.restore_point->step_metadata.step() : 0;
  MOTLEY_TRY(prune_to(folder.dir(),
                      retained_with(done, list_checkpoints(folder.dir()), planned.config),
                      lock->launch()));
  MOTLEY_ASSIGN(std::string id, folder.ensure_run_id(shards.stores.run));
  if (shards.restore_point) {
    const auto transfers = plan_transfers(
        *shards.restore_point, parameters_by_store(planned.plan, planned.model, shards.stores),
        shards.stores, planned.cluster);
    MOTLEY_ASSIGN(shards.resume_folders,
                  play_moves(transfers, shards.stores, folder.dir(), lock->launch()));
  }
  ReadyRun run{.planned = planned,
               .steps = {.first = done + 1},
               .resumed = std::nullopt,
               .folder = folder,
               .id = std::move(id),
               .launch = lock->launch(),
               .shards = std::move(shards)};
  return Launch{std::move(run), std::move(lock)};
}

}  // namespace

struct PlayedLaunch::Impl {
  Impl(const PlayedMachines& given, SavedFiles& files, Launch prepared)
      : machines(given), saved(files), launch(std::move(prepared)) {}

  // The start of the workers: replicators claim their folders and get the resumed checkpoint.
  Result<void> start() {
    const StoreInventory& stores = run.shards.stores;
    const auto replicators = plan_replicators(plan, stores, run.planned.cluster, 1);
    group.emplace("inproc", plan.rank_count());
    for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
      auto played = std::make_unique<PlayedRank>(group->at(rank), rank, events);
      const std::string& machine = plan.ranks[rank.index()].machine;
      played->job.rank = rank;
      played->job.run_dir = machines.run_dir(machine).string();
      played->job.store = stores.of(machine);
      played->job.launch = run.launch;
      played->job.run_id = run.id;
      if (const auto replicator = replicators.find(rank.value); replicator != replicators.end()) {
        played->job.replicator = replicator->second;
        MOTLEY_ASSIGN(played->replicator,
                      FolderReplicator::open(played->job, played->channel, played->work));
      }
      workers.push_back(std::move(played));
    }
    committer.emplace(run.folder.dir(), run.launch, run.planned.config, run.planned.model, plan,
                      ranks_elsewhere(plan, stores));
    folders.emplace(run, [this](int worker, const Json& message) {
      workers[static_cast<std::size_t>(worker)]->channel.give(message);
    });
    committer->retain_always(folders->safe_steps());
    std::size_t said = 0;
    for (const auto& played : workers) {
      if (!played->replicator) continue;
      played->replicator->start({played->late, played->job.rank, epoch_of(played->job), 0},
                                StallTimeout(kStallTimeout_s));
      ++said;
    }
    replicators_to_come = said;
    return hear_until([&] { return replicators_to_come == 0; });
  }

  // Handles a worker's event as RunFollower does.
  Result<void> hear(int worker, const Json& event) {
    const std::string kind = event.at("event");
    if (kind == "keeper") {
      folders->add(worker);
      --replicators_to_come;
    } else if (kind == "copied") {
      MOTLEY_TRY(folders->add_copied(worker, event));
      ++copied[event.at("step")];
    } else if (kind == "copy_failed") {
      MOTLEY_TRY(folders->add_failed(event));
      // A checkpoint that was removed meanwhile needs no copies.
      const std::int64_t step = event.at("step");
      const auto stand = list_checkpoints(run.folder.dir());
      if (std::ranges::count(stand, step, &CheckpointInfo::step) > 0) return error_from_json(event);
    } else {
      return error_from_json(event);
    }
    committer->retain_always(folders->safe_steps());
    return {};
  }

  Result<void> hear_until(const std::function<bool()>& is_done) {
    while (!is_done()) {
      const auto event = events.next(kStallTimeout_s);
      if (!event) return Error{ErrorCode::kPeer, "the replicators say nothing", "", ""};
      MOTLEY_TRY(hear(event->first, event->second));
    }
    return {};
  }

  Result<void> hear_all() {
    while (const auto event = events.next(0)) MOTLEY_TRY(hear(event->first, event->second));
    return {};
  }

  Result<std::vector<Shard>> write(std::int64_t step, int version) {
    mark(fmt::format("begin {} {}", step, version));
    const int count = plan.rank_count();
    std::vector<std::optional<Result<Shard>>> written(static_cast<std::size_t>(count));
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < count; ++rank) {
        threads.emplace_back([&, rank] {
          const auto parameters =
              tensors_of(plan, run.planned.model, rank, kTensorParts[0], version);
          const auto moments = tensors_of(plan, run.planned.model, rank, kTensorParts[1], version);
          written[static_cast<std::size_t>(rank)].emplace(
              write_shard(place_of(rank, step), rank, count, views(parameters), views(moments)));
        });
      }
    }
    std::vector<Shard> shards;
    for (auto& shard : written) {
      MOTLEY_TRY(*shard);
      shards.push_back(std::move(*shard).value());
      const fs::path folder = partial_folder(place_of(shards.back().rank, step));
      for (const WrittenFile* file : {&shards.back().model, &shards.back().optimizer}) {
        saved[version][file->name] = read_bytes(folder / file->name);
      }
    }
    return shards;
  }

  [[nodiscard]] SaveLocation place_of(int rank, std::int64_t step) const {
    const Job& job = workers[static_cast<std::size_t>(rank)]->job;
    return {job.run_dir, job.launch, step};
  }

  // Handles the ranks' reports as the launcher does.
  Result<void> save(std::int64_t step, int version) {
    MOTLEY_ASSIGN(const std::vector<Shard> shards, write(step, version));
    MOTLEY_TRY(hear_all());
    std::optional<SaveOutcome> outcome;
    for (const Shard& shard : shards) {
      const Json event = shard_event({TestRun::state(step), shard});
      MOTLEY_ASSIGN(outcome, committer->add_shard(shard.rank, event));
    }
    if (outcome->failure) return *outcome->failure;
    if (outcome->stale) return *outcome->stale;
    mark(fmt::format("saved {} {}", step, version));
    MOTLEY_TRY(folders->notify_committed(*outcome->folder));
    committer->retain_always(folders->safe_steps());
    last_saved = step;
    return {};
  }

  // The folder that the rank resumes from, as give_folders() of cluster/run/training_run.cc
  // selects it.
  [[nodiscard]] fs::path resumed_folder(int rank) const {
    const auto view = run.shards.resume_folders.find(
        run.shards.stores.of(plan.ranks[static_cast<std::size_t>(rank)].machine));
    return view == run.shards.resume_folders.end() ? run.shards.restore_point->folder
                                                   : view->second;
  }

  // The version of the rank's first value; all others must have the same.
  [[nodiscard]] Result<int> version_read_by(int rank) const {
    MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(resumed_folder(rank)));
    std::optional<int> version;
    for (const char* const part : kTensorParts) {
      for (const OwnedTensor& tensor : tensors_of(plan, run.planned.model, rank, part, 0)) {
        std::vector<float> values(tensor.values.size());
        MOTLEY_TRY(reader.read(tensor.name, tensor.shape, values));
        if (!version) version = static_cast<int>(values[0]);
        for (std::size_t k = 0; k < values.size(); ++k) {
          if (values[k] == static_cast<float>(*version) + tensor.values[k]) continue;
          return Error{ErrorCode::kCorrupt,
                       fmt::format("rank {} reads {} of another version", rank, tensor.name), "",
                       ""};
        }
      }
    }
    return *version;
  }

  const PlayedMachines& machines;
  SavedFiles& saved;
  Launch launch;
  const ReadyRun& run = launch.run;
  const Plan& plan = run.planned.plan;
  std::optional<CheckpointCommitter> committer;
  std::optional<FolderReplicators> folders;
  std::size_t replicators_to_come = 0;
  std::map<std::int64_t, std::size_t> copied;  // by step
  std::int64_t last_saved = 0;
  RankEvents events;
  std::optional<RankGroup> group;
  std::vector<std::unique_ptr<PlayedRank>> workers;  // [Rank]
};

PlayedLaunch::PlayedLaunch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

PlayedLaunch::~PlayedLaunch() = default;

Result<std::unique_ptr<PlayedLaunch>> PlayedLaunch::prepare(const PlayedMachines& machines,
                                                            SavedFiles& saved) {
  MOTLEY_ASSIGN(Launch launch, prepare_launch(machines, Log("", LogLevel::kError)));
  auto impl = std::make_unique<Impl>(machines, saved, std::move(launch));
  return std::unique_ptr<PlayedLaunch>(new PlayedLaunch(std::move(impl)));
}

Result<void> PlayedLaunch::start() {
  return impl_->start();
}

std::int64_t PlayedLaunch::resumed_step() const {
  return impl_->run.steps.first - 1;
}

Result<int> PlayedLaunch::resumed_version() const {
  std::set<int> versions;
  for (int rank = 0; rank < impl_->plan.rank_count(); ++rank) {
    MOTLEY_ASSIGN(const int version, impl_->version_read_by(rank));
    versions.insert(version);
  }
  if (versions.size() == 1) return *versions.begin();
  return Error{ErrorCode::kCorrupt, "the ranks read different versions", "", ""};
}

Result<void> PlayedLaunch::save(std::int64_t step, int version) {
  return impl_->save(step, version);
}

Result<void> PlayedLaunch::write(std::int64_t step, int version) {
  MOTLEY_TRY(impl_->write(step, version));
  return {};
}

Result<void> PlayedLaunch::await_copies() {
  return impl_->hear_until(
      [this] { return impl_->copied[impl_->last_saved] == impl_->machines.layout().copies(); });
}

Result<void> PlayedLaunch::finish() {
  for (const auto& played : impl_->workers) {
    if (played->replicator) MOTLEY_TRY(played->replicator->finish(impl_->last_saved));
  }
  return impl_->hear_all();
}

Result<void> PlayedLaunch::gather() {
  const ReadyRun& run = impl_->run;
  MOTLEY_TRY(
      play_moves(plan_deliveries(*run.shards.restore_point, missing_here(*run.shards.restore_point),
                                 run.shards.stores, run.planned.cluster),
                 run.shards.stores, run.folder.dir(), run.launch));
  return {};
}

}  // namespace motley::testing

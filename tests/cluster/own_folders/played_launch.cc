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

}  // namespace

struct PlayedLaunch::Impl {
  Impl(const PlayedMachines& given, SavedFiles& files) : machines(given), saved(files) {}

  // The disk operations of prepare_run(), in the same order.
  Result<void> prepare() {
    run.cluster = machines.cluster();
    run.model = three_layers();
    run.plan = plan_of(machines.layout());
    run.config.checkpoint.copies = 1;
    run.config.checkpoint.keep = machines.layout().keep;
    run.folder = RunFolder(machines.run_dir(kDesk));
    MOTLEY_TRY(run.folder.make());
    MOTLEY_ASSIGN(RunLock lock, RunLock::acquire(run.folder.dir(), log));
    run.lock = std::make_unique<RunLock>(std::move(lock));
    const QueryStores ask = [&](const StoreQuery& store_query) -> Result<StoreInventory> {
      MOTLEY_ASSIGN(run.stores, machines.ask(run.lock->launch(), store_query, IfAbsent::kMake));
      return run.stores;
    };
    MOTLEY_ASSIGN(run.restore_point,
                  find_restore_point(run.folder.dir(), run.lock->launch(), ask, log));
    MOTLEY_TRY(run.lock->advance_past(run.stores.last_launch(), log));
    run.first_step = (run.restore_point ? run.restore_point->step_metadata.step() : 0) + 1;
    MOTLEY_TRY(prune_to(run.folder.dir(),
                        retained_with(run.first_step - 1, list_checkpoints(run.folder.dir()),
                                      retention_policy(run.config.checkpoint)),
                        run.lock->launch()));
    MOTLEY_ASSIGN(run.id, run.folder.ensure_run_id(run.stores.run));
    if (!run.restore_point) return {};
    const auto transfers =
        plan_transfers(*run.restore_point, parameters_by_store(run.plan, run.model, run.stores),
                       run.stores, run.cluster);
    MOTLEY_ASSIGN(run.resume_folders,
                  play_moves(transfers, run.stores, run.folder.dir(), run.lock->launch()));
    return {};
  }

  // The start of the workers: replicators claim their folders and get the resumed checkpoint.
  Result<void> start() {
    const auto replicators = plan_replicators(run.plan, run.stores, run.cluster, 1);
    group.emplace("inproc", run.plan.rank_count());
    for (Rank rank{0}; rank.value < run.plan.rank_count(); ++rank.value) {
      auto played = std::make_unique<PlayedRank>(group->at(rank), rank, events);
      const std::string& machine = run.plan.ranks[rank.index()].machine;
      played->job.rank = rank;
      played->job.run_dir = machines.run_dir(machine).string();
      played->job.store = run.stores.of(machine);
      played->job.launch = run.lock->launch();
      played->job.run_id = run.id;
      if (const auto replicator = replicators.find(rank.value); replicator != replicators.end()) {
        played->job.replicator = replicator->second;
        MOTLEY_ASSIGN(played->replicator,
                      FolderReplicator::open(played->job, played->channel, played->work));
      }
      workers.push_back(std::move(played));
    }
    committer.emplace(run.folder.dir(), run.lock->launch(), run.config, run.model, run.plan,
                      ranks_elsewhere(run.plan, run.stores));
    folders.emplace(
        run, run.restore_point ? std::optional(run.restore_point->step_metadata) : std::nullopt,
        [this](int worker, const Json& message) {
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
    const int count = run.plan.rank_count();
    std::vector<std::optional<Result<Shard>>> written(static_cast<std::size_t>(count));
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < count; ++rank) {
        threads.emplace_back([&, rank] {
          const auto parameters = tensors_of(run.plan, run.model, rank, kTensorParts[0], version);
          const auto moments = tensors_of(run.plan, run.model, rank, kTensorParts[1], version);
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
    const auto view = run.resume_folders.find(
        run.stores.of(run.plan.ranks[static_cast<std::size_t>(rank)].machine));
    return view == run.resume_folders.end() ? run.restore_point->folder : view->second;
  }

  // The version of the rank's first value; all others must have the same.
  [[nodiscard]] Result<int> version_read_by(int rank) const {
    MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(resumed_folder(rank)));
    std::optional<int> version;
    for (const char* const part : kTensorParts) {
      for (const OwnedTensor& tensor : tensors_of(run.plan, run.model, rank, part, 0)) {
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
  const Log log{"", LogLevel::kError};
  PreparedRun run;
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
  auto impl = std::make_unique<Impl>(machines, saved);
  MOTLEY_TRY(impl->prepare());
  return std::unique_ptr<PlayedLaunch>(new PlayedLaunch(std::move(impl)));
}

Result<void> PlayedLaunch::start() {
  return impl_->start();
}

std::int64_t PlayedLaunch::resumed_step() const {
  return impl_->run.first_step - 1;
}

Result<int> PlayedLaunch::resumed_version() const {
  std::set<int> versions;
  for (int rank = 0; rank < impl_->run.plan.rank_count(); ++rank) {
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
  const PreparedRun& run = impl_->run;
  MOTLEY_TRY(play_moves(plan_deliveries(*run.restore_point, missing_here(*run.restore_point),
                                        run.stores, run.cluster),
                        run.stores, run.folder.dir(), run.lock->launch()));
  return {};
}

}  // namespace motley::testing

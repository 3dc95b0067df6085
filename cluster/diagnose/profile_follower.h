// ProfileFollower: assembles a cluster's profile from the events of the profiling workers. One
// owner thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/log.h"
#include "base/result.h"
#include "cluster/diagnose/computed_devices.h"
#include "cluster/diagnose/measure.h"
#include "cluster/diagnose/measuring_progress.h"
#include "cluster/diagnose/precision_check.h"
#include "cluster/diagnose/shared_computer.h"
#include "cluster/launch/workers.h"
#include "plan/cluster.h"
#include "plan/profile.h"

namespace motley {

class ProfileFollower {
 public:
  // `known`: devices that are not profiled again. `computed`: those measured by another device's
  // worker. All references must outlive the follower.
  ProfileFollower(const Cluster& cluster,
                  const std::vector<WorkerSpec>& workers,
                  std::vector<ComputedDevice> computed,
                  const std::string& precision,
                  const Profile& known,
                  const MeasureOptions& options,
                  const Log& log);

  // An error ends the group: the devices cannot hold the model, or none of them computes in
  // train.precision.
  Result<void> on_event(int worker, const Json& event);

  void clear_line() { progress_->clear(); }

  [[nodiscard]] bool has_refused_precision() const { return precision_->has_refused(); }

  // To be called once every worker has ended without an error.
  Result<Profile> finish(double took_s);

 private:
  // Adds the profile of the worker's device and of the simulated ones that are started alike.
  void add_profile(std::size_t worker, DeviceProfile measured);
  // To be called after each memory report; checks once all have arrived.
  [[nodiscard]] Result<void> check_memory() const;
  // Every machine of the cluster, from its workers' reports, else from the known profile.
  [[nodiscard]] std::vector<FoundMachine> machines_found() const;
  // Divides the free memory of a computer among the machines that share it.
  void share_memory();
  [[nodiscard]] std::string summary(double took_s) const;

  const Cluster& cluster_;
  const std::vector<ComputedDevice> computed_;
  Profile profile_;
  const MeasureOptions& options_;
  const Log& log_;
  std::vector<std::string> names_;     // by worker
  std::vector<std::string> machines_;  // by worker
  std::vector<std::string> devices_;   // by worker, in messages
  std::vector<bool> own_memory_;       // by worker: its device has its own memory
  std::size_t virtual_workers_ = 0;
  std::vector<std::optional<FoundMachine>> memory_;  // by worker: its report of its machine
  std::optional<MeasuringProgress> progress_;
  std::optional<PrecisionCheck> precision_;
  std::size_t reused_ = 0;
};

}  // namespace motley

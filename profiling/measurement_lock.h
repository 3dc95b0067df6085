// MeasurementLock: coordinates concurrent measurements on one computer.
//
// Workers measure concurrently, as they will compute in a group, or exclusively while the others
// wait. They identify others on the same computer by a lock on a common file. If no such file can
// be created, none waits.
#pragma once

#include <filesystem>
#include <functional>

namespace motley {

class MeasurementLock {
 public:
  // Creates the lock file in this folder, one per boot of the system; "" = no file.
  explicit MeasurementLock(const std::filesystem::path& folder);
  ~MeasurementLock();  // releases the lock
  MeasurementLock(const MeasurementLock&) = delete;
  MeasurementLock& operator=(const MeasurementLock&) = delete;

  // Waits until no exclusive measurement is running, then takes the shared lock. Returns false
  // after `stall_timeout_s` without it, or at once if there is no file. `on_wait` is called
  // repeatedly meanwhile.
  bool lock_shared_for(double stall_timeout_s, const std::function<void()>& on_wait = {});
  // The same for the exclusive lock.
  bool lock_exclusive_for(double stall_timeout_s, const std::function<void()>& on_wait = {});

 private:
  bool take(int how, double stall_timeout_s, const std::function<void()>& on_wait);

  int fd_ = -1;
};

}  // namespace motley

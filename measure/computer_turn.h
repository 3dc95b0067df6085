// ComputerTurn: coordinates concurrent measurements on one computer.
//
// Workers measure concurrently, as they will compute in a group, or exclusively while the others
// wait. They identify others on the same computer by a lock on a common file. If no such file can
// be created, none waits.
#pragma once

#include <filesystem>
#include <functional>

namespace motley {

class ComputerTurn {
 public:
  // Creates the lock file in this folder, one per boot of the system; "" = no file.
  explicit ComputerTurn(const std::filesystem::path& folder);
  ~ComputerTurn();  // releases the lock
  ComputerTurn(const ComputerTurn&) = delete;
  ComputerTurn& operator=(const ComputerTurn&) = delete;

  // Waits until no exclusive measurement is running, then takes the shared lock. Returns false
  // after `patience_s` without it, or at once if there is no file. `on_wait` is called repeatedly
  // meanwhile.
  bool beside_others(double patience_s, const std::function<void()>& on_wait = {});
  // The same for the exclusive lock.
  bool alone(double patience_s, const std::function<void()>& on_wait = {});

 private:
  bool take(int how, double patience_s, const std::function<void()>& on_wait);

  int fd_ = -1;
};

}  // namespace motley

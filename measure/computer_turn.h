// ComputerTurn: who measures on this computer at the same time.
//
// Workers measure beside each other, as they will compute in a group, or one of them alone while
// the others wait; which of them share a computer only they can tell, by a file that all of them
// see. Where no such file can be made, everybody goes on at once.
#pragma once

#include <filesystem>
#include <functional>

namespace motley {

class ComputerTurn {
 public:
  // The file is made in this folder, one for each start of the system; "" = there is none.
  explicit ComputerTurn(const std::filesystem::path& folder);
  ~ComputerTurn();  // others may go on
  ComputerTurn(const ComputerTurn&) = delete;
  ComputerTurn& operator=(const ComputerTurn&) = delete;

  // Waits until nobody is alone, and is then one of those who measure beside each other. Gives up,
  // and returns false, after `patience_s`. `on_wait` is called now and then meanwhile.
  bool beside_others(double patience_s, const std::function<void()>& on_wait = {});
  // Waits until nobody else measures.
  bool alone(double patience_s, const std::function<void()>& on_wait = {});

 private:
  bool take(int how, double patience_s, const std::function<void()>& on_wait);

  int fd_ = -1;
};

}  // namespace motley

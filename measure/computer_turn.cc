#include "measure/computer_turn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "base/system/files.h"
#include "base/system/process_identity.h"

namespace motley {

ComputerTurn::ComputerTurn(const std::filesystem::path& folder) {
  if (folder.empty() || !make_folders(folder)) return;
  // Folders may be shared between computers, which do not wait for each other.
  const std::filesystem::path file =
      folder / fmt::format(".measuring-{:016x}", hash64(this_process().place));
  fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

ComputerTurn::~ComputerTurn() {
  if (fd_ >= 0) ::close(fd_);
}

bool ComputerTurn::beside_others(double patience_s, const std::function<void()>& on_wait) {
  return take(LOCK_SH, patience_s, on_wait);
}

bool ComputerTurn::alone(double patience_s, const std::function<void()>& on_wait) {
  return take(LOCK_EX, patience_s, on_wait);
}

bool ComputerTurn::take(int how, double patience_s, const std::function<void()>& on_wait) {
  constexpr auto kBetweenTries = std::chrono::milliseconds(20);
  if (fd_ < 0) return false;
  (void)::flock(fd_, LOCK_UN);
  const Deadline deadline = Deadline::after_s(patience_s);
  while (::flock(fd_, how | LOCK_NB) != 0) {
    if (deadline.passed()) return false;
    if (on_wait) on_wait();
    std::this_thread::sleep_for(kBetweenTries);
  }
  return true;
}

}  // namespace motley

// A worker with a lease of MOTLEY_LEASE_S seconds. Its arguments select its behaviour:
//   busy             computes
//   blocked FIFO     blocks in a system call
//   mute             sends events until its output blocks
//   wait SECONDS     waits for a message while the group makes progress, and exits with the error's
//                    code
//   save SECONDS     saves for that time once it has lost its launcher; until then it sends events
//   stall            never ends its save, and makes no progress
// Its last message is written to the file MOTLEY_LAST_WORDS.
#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "protocol/worker_channel.h"

namespace motley {
namespace {

int run(const std::string& what, const std::string& with) {
  constexpr SavingTime kSavingTime{0.7, 60};
  WorkerChannel channel(kSavingTime);
  std::atomic<std::uint64_t> progress{0};
  if (what == "save" || what == "stall") {
    channel.outlive_launcher([&progress] { return progress.load(); });
  }
  channel.start_lease(std::stod(std::getenv("MOTLEY_LEASE_S")), [](const std::string& words) {
    if (const char* path = std::getenv("MOTLEY_LAST_WORDS")) std::ofstream(path) << words;
  });
  channel.send({{"event", "hello"}});
  if (what == "wait") {
    const StallTimeout stall_timeout(std::stod(with), channel.group_progress_clock());
    const auto message = channel.receive(stall_timeout.deadline(), "a word");
    return message.ok() ? 0 : static_cast<int>(message.error().code);
  }
  if (what == "blocked") return ::open(with.c_str(), O_RDONLY);
  if (what == "save") {
    while (!channel.is_to_finish()) channel.send({{"event", "step"}, {"doing", "a step"}});
    for (double left_s = std::stod(with); left_s > 0; left_s -= 0.05) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ++progress;
    }
    if (const char* path = std::getenv("MOTLEY_LAST_WORDS")) std::ofstream(path) << "saved";
    return channel.lost_status();
  }
  for (volatile bool on = true; on;) {
    if (what == "mute") channel.send({{"event", "beat"}, {"doing", std::string(1000, 'x')}});
  }
  return 0;
}

}  // namespace
}  // namespace motley

int main(int, char** argv) {
  return motley::run(argv[1], argv[2] == nullptr ? "" : argv[2]);
}

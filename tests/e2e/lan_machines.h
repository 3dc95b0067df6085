// Two machines of scripts/lan for the tests of one program. They need root, network namespaces and
// that no LAN is up yet: without them the tests are to be skipped.
#pragma once

#include <cstdint>
#include <string>

namespace motley::test {

class LanMachines {
 public:
  // With further words for `scripts/lan up`.
  explicit LanMachines(const std::string& words);
  ~LanMachines();  // fails the test where they remain
  LanMachines(const LanMachines&) = delete;
  LanMachines& operator=(const LanMachines&) = delete;

  [[nodiscard]] bool are_up() const { return are_up_; }

  // A cluster file's text: both machines, with a thread each.
  [[nodiscard]] static std::string cluster_text(bool trusted);

  // What a machine, 1 or 2, has sent so far by the counter of its network interface, headers of
  // Ethernet included.
  [[nodiscard]] static std::uint64_t sent_bytes(int number);

 private:
  bool are_up_ = false;
};

// Runs a command of the shell, without its output; whether its exit status is 0.
bool shell(const std::string& command);

// `scripts/lan` with words. Fails the test where it fails.
void lan(const std::string& words);

}  // namespace motley::test

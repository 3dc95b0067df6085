// Two machines of scripts/lan for the tests of one program. They need root, network namespaces and
// no other LAN; otherwise tests are skipped.
#pragma once

#include <cstdint>
#include <string>

namespace motley::test {

class LanMachines {
 public:
  // `words`: additional arguments of `scripts/lan up`.
  explicit LanMachines(const std::string& words);
  ~LanMachines();  // fails the test if the machines cannot be removed
  LanMachines(const LanMachines&) = delete;
  LanMachines& operator=(const LanMachines&) = delete;

  [[nodiscard]] bool are_up() const { return are_up_; }

  // The text of a cluster file: both machines, one thread each.
  [[nodiscard]] static std::string cluster_text(bool trusted);

  // The bytes that a machine, 1 or 2, has sent so far by the counter of its network interface,
  // including Ethernet headers.
  [[nodiscard]] static std::uint64_t sent_bytes(int number);

 private:
  bool are_up_ = false;
};

// Runs a shell command without its output; returns whether its exit status is 0.
bool shell(const std::string& command);

// Runs `scripts/lan` with these arguments. Fails the test if it fails.
void lan(const std::string& words);

}  // namespace motley::test

// The commands that a joined machine carries out for the head (docs/formats/join.md): programs of
// its own installation, without a shell. One owner thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/process/process.h"
#include "base/result.h"
#include "cluster/join/join_messages.h"
#include "cluster/join/poll_set.h"
#include "cluster/join/stream_window.h"
#include "cluster/join/tls_link.h"

namespace motley {

// What to do for a command: start a program, or answer at once.
struct JoinedOrder {
  std::vector<std::string> argv;
  JoinExit answer;  // if argv is empty
};

// `programs`: the folder of this installation's programs. An unknown command is answered with its
// problem.
[[nodiscard]] JoinedOrder joined_order(const std::vector<std::string>& words,
                                       const std::filesystem::path& programs);

class JoinedCommand {
 public:
  JoinedCommand(Process process, TlsLink& link, std::uint32_t channel);

  void watch(PollSet& polled);
  // A message of the head. An error if it violates the protocol.
  [[nodiscard]] Result<void> take(const JoinFrame& frame);

  // Ends the standard input, after which Motley's programs end by themselves.
  void stop() { input_.end(); }

  // Sends SIGTERM, after which a training saves the current step before the program ends.
  void ask_to_end();

  void kill() { process_.kill_group(); }

  // Whether the end was reported.
  [[nodiscard]] bool is_over() const { return is_over_; }

  [[nodiscard]] bool has_exited() const { return exit_.has_value(); }

 private:
  Process process_;
  TlsLink& link_;
  const std::uint32_t channel_;
  StreamSink input_;
  StreamSource output_;
  StreamSource errors_;
  std::optional<ProcessExit> exit_;
  bool is_over_ = false;
};

}  // namespace motley
